// Linear and cosine decay, each with its own warm-up, and exponential decay.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/train/optimizers/schedule_forms.h"

namespace headrace::schedules {

void check(const Decay& form) {
  const DecayOptions& options = form.options;
  check_rate("peak", options.peak);
  check_rate("floor", options.floor);
  if (options.warmup_steps < options.total_steps) return;
  throw ConfigError("a decay over " + std::to_string(options.total_steps) + " steps cannot warm up for " +
                    std::to_string(options.warmup_steps));
}

float rate_at(const Decay& form, std::uint64_t step) noexcept {
  const DecayOptions& options = form.options;
  const double warmup = static_cast<double>(options.warmup_steps);
  const double now = static_cast<double>(step);
  if (step < options.warmup_steps) return static_cast<float>(options.peak * (now + 1) / warmup);
  const double done = std::min(1.0, (now - warmup) / (static_cast<double>(options.total_steps) - warmup));
  const double share = form.cosine ? (1 + std::cos(std::numbers::pi * done)) / 2 : 1 - done;
  return static_cast<float>(options.floor + (options.peak - options.floor) * share);
}

Steps bends(const Decay& form) { return {form.options.warmup_steps, form.options.total_steps}; }

void check(const ExponentialOptions& form) {
  check_rate("initial rate", form.initial);
  if (form.factor > 0 && form.factor <= 1 && form.every_steps > 0) return;
  throw ConfigError(fmt::format("a rate cannot decay by {} every {} steps", form.factor, form.every_steps),
                    "the factor lies above 0 and at 1 or below, the number of steps above 0");
}

float rate_at(const ExponentialOptions& form, std::uint64_t step) noexcept {
  const double times = static_cast<double>(step) / static_cast<double>(form.every_steps);
  const double factor = std::pow(static_cast<double>(form.factor), form.staircase ? std::floor(times) : times);
  return static_cast<float>(form.initial * factor);
}

Steps bends(const ExponentialOptions&) { return {}; }

}  // namespace headrace::schedules
