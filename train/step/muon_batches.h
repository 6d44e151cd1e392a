// Which matrices Muon takes through its products together.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "headrace/devices/base/shape.h"

namespace headrace {

// Divides matrices, in the order in which their gradients are finished, into runs of neighbours, one call of
// Kernels::muon() each; returns their lengths. A GPU pads the matrices of a call to the largest of them, and a
// call costs it so many launches: the runs are those for which padding and launches cost the least together. They
// follow from the shapes alone, so that results do not depend on when gradients are ready. REQUIRES: two axes or
// more, no extent of 0.
std::vector<std::size_t> muon_batches(std::span<const Shape> matrices, int iterations);

// Operations that `count` matrices take when they are padded to `rows` by `columns`, whichever is larger.
double muon_operations(std::size_t count, double rows, double columns, int iterations);

}  // namespace headrace
