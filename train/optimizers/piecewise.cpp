// Piecewise constant schedules, and functions shared by schedules of several parts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "headrace/devices/base/error.h"
#include "headrace/train/optimizers/schedule_forms.h"

namespace headrace::schedules {

void check_rate(const char* what, float rate) {
  if (std::isfinite(rate) && rate >= 0) return;
  throw ConfigError(fmt::format("a schedule's {} is {}", what, rate), "give a finite number that is not negative");
}

void check_boundaries(const char* what, std::size_t count, const Steps& boundaries) {
  if (count != boundaries.size() + 1) {
    throw ConfigError(
        fmt::format("{} boundaries part {} {}, got {}", boundaries.size(), boundaries.size() + 1, what, count));
  }
  std::uint64_t before = 0;
  for (const std::uint64_t boundary : boundaries) {
    if (boundary <= before) {
      throw ConfigError(fmt::format("a schedule's boundary at step {} does not lie behind {}", boundary, before),
                        "give them in ascending order, the first of them above 0");
    }
    before = boundary;
  }
}

std::size_t part_at(const Steps& boundaries, std::uint64_t step) noexcept {
  return static_cast<std::size_t>(std::ranges::upper_bound(boundaries, step) - boundaries.begin());
}

void check(const Constant& form) {
  if (std::isfinite(form.rate) && form.rate >= 0) return;
  throw ConfigError(fmt::format("a learning rate is {}", form.rate), "give a finite number that is not negative");
}

void check(const PiecewiseOptions& form) {
  for (const float rate : form.rates) check_rate("rate", rate);
  check_boundaries("rates", form.rates.size(), form.boundaries);
}

float rate_at(const PiecewiseOptions& form, std::uint64_t step) noexcept {
  return form.rates[part_at(form.boundaries, step)];
}

Steps bends(const PiecewiseOptions& form) { return form.boundaries; }

}  // namespace headrace::schedules
