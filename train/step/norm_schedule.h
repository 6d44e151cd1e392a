// In which updates Muon scales the norms of its weights.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/devices/kernels.h"

namespace headrace {

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
