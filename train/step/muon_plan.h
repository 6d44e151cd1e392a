// Plans Muon's work on matrices: which go through its products together, and which updates scale their norms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/devices/base/shape.h"
#include "headrace/devices/kernels.h"

namespace headrace {

// Divides matrices, in the order in which their gradients are finished, into runs of neighbours, one
// Kernels::muon() call each; returns their lengths. A GPU pads the matrices of a call to the largest, and each
// call costs a number of launches: the runs minimise the cost of padding and launches together. They depend on the
// shapes alone, so results do not depend on when gradients are ready. REQUIRES: at least two axes, no extent of 0.
std::vector<std::size_t> muon_batches(std::span<const Shape> matrices, int iterations);

// Returns the operations for `count` matrices padded to `rows` by `columns`, whichever of the two is larger.
double muon_operations(std::size_t count, double rows, double columns, int iterations);

// Depends on the update's number alone, so that a run may begin anywhere. Update n, counted from 1, scales if at
// least first + floor(growth n / over_steps) updates have passed since the last one that did, or since the
// beginning; after over_steps the distance no longer grows.
class NormSchedule {
 public:
  // Throws ConfigError for a distance below 1.
  explicit NormSchedule(const NormInterval& interval);

  // Returns whether the update after `step` others scales.
  bool scales(std::uint64_t step) const;

 private:
  std::uint64_t longest_;            // distance after over_steps
  std::vector<std::uint64_t> past_;  // the updates that scale up to over_steps, in order
};

}  // namespace headrace
