// The one-cycle schedule.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "headrace/devices/base/error.h"
#include "headrace/train/optimizers/schedule_forms.h"

namespace headrace::schedules {
namespace {

// Returns the step at which the peak is reached; it need not be whole.
double peak_of(const OneCycleOptions& form) {
  return static_cast<double>(form.warmup_share) * static_cast<double>(form.total_steps) - 1;
}

double between(const OneCycleOptions& form, double from, double to, double done) {
  if (form.linear) return from + (to - from) * done;
  return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * done));
}

}  // namespace

void check(const OneCycleOptions& form) {
  check_rate("peak", form.peak);
  if (!(form.initial_divisor >= 1 && form.final_divisor >= 1)) {
    throw ConfigError(
        fmt::format("a cycle cannot divide its peak by {} and {}", form.initial_divisor, form.final_divisor),
        "give divisors of 1 or more");
  }
  if (peak_of(form) > 0 && peak_of(form) < static_cast<double>(form.total_steps) - 1) return;
  throw ConfigError(fmt::format("a cycle of {} steps cannot rise over a share of {} of them", form.total_steps,
                                form.warmup_share),
                    "it has to rise over more than a step, and to fall behind that");
}

float rate_at(const OneCycleOptions& form, std::uint64_t step) noexcept {
  const double top = form.peak, bottom = top / static_cast<double>(form.initial_divisor);
  const double last = static_cast<double>(form.total_steps) - 1, peak = peak_of(form);
  const double now = std::min(last, static_cast<double>(step));
  if (now <= peak) return static_cast<float>(between(form, bottom, top, now / peak));
  const double end = bottom / static_cast<double>(form.final_divisor);
  return static_cast<float>(between(form, top, end, (now - peak) / (last - peak)));
}

Steps bends(const OneCycleOptions& form) {
  return {static_cast<std::uint64_t>(peak_of(form)) + 1, form.total_steps - 1};
}

}  // namespace headrace::schedules
