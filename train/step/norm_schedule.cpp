#include "headrace/train/step/norm_schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/devices/base/error.h"

namespace headrace {

namespace {

constexpr std::uint64_t kMaxSteps = std::uint64_t{1} << 24;

}  // namespace

NormSchedule::NormSchedule(const NormInterval& interval)
    : longest_(static_cast<std::uint64_t>(interval.first + interval.growth)) {
  if (interval.first < 1 || interval.growth < 0 || interval.over_steps < 1 || interval.over_steps > kMaxSteps) {
    throw ConfigError(fmt::format("Muon cannot scale norms every {} updates, growing by {} over {}",
                                  interval.first, interval.growth, interval.over_steps),
                      "the interval is at least 1 and grows by 0 or more, over 1 to 2^24 updates");
  }
  if (interval.growth == 0) return;
  const auto first = static_cast<std::uint64_t>(interval.first),
             growth = static_cast<std::uint64_t>(interval.growth);
  for (std::uint64_t update = 1, last = 0; update <= interval.over_steps; ++update) {
    if (update - last < first + growth * update / interval.over_steps) continue;
    past_.push_back(last = update);
  }
}

bool NormSchedule::scales(std::uint64_t step) const {
  const std::uint64_t update = step + 1;
  const std::uint64_t last = past_.empty() ? 0 : past_.back();
  if (update > last) return (update - last) % longest_ == 0;
  return std::ranges::binary_search(past_, update);
}

}  // namespace headrace
