// How Muon works on matrices: which go through its products together, and which updates scale their norms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/devices/base/shape.h"
#include "headrace/devices/kernels.h"

namespace headrace {

// Divides matrices, in the order in which their gradients are finished, into runs of neighbours, one call of
// Kernels::muon() each; returns their lengths. A GPU pads the matrices of a call to the largest of them, and a
// call costs it so many launches: the runs are those for which padding and launches cost the least together. They
// follow from the shapes alone, so that results do not depend on when gradients are ready. REQUIRES: two axes or
// more, no extent of 0.
std::vector<std::size_t> muon_batches(std::span<const Shape> matrices, int iterations);

// Returns the operations that `count` matrices take when they are padded to `rows` by `columns`, whichever is
// larger.
double muon_operations(std::size_t count, double rows, double columns, int iterations);

// A function of the update's number alone, so that a run may begin anywhere. Update n, counted from 1, scales
// where at least first + floor(growth n / over_steps) updates have gone by since one that did, or since the
// beginning; after over_steps the distance grows no more.
class NormSchedule {
 public:
  // ConfigError for a distance below 1.
  explicit NormSchedule(const NormInterval& interval);

  // The update after `step` others.
  bool scales(std::uint64_t step) const;

 private:
  std::uint64_t longest_;            // distance after over_steps
  std::vector<std::uint64_t> past_;  // the updates that scale up to over_steps, in order
};

}  // namespace headrace
