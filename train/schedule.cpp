#include "headrace/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "headrace/devices/base/error.h"

namespace headrace {

Schedule::Schedule(Shape shape, const DecayOptions& options) : shape_(shape), options_(options) {
  if (options.warmup_steps >= options.total_steps) {
    throw ConfigError("a decay over " + std::to_string(options.total_steps) + " steps cannot warm up for " +
                      std::to_string(options.warmup_steps));
  }
}

Schedule Schedule::linear_decay(const DecayOptions& options) { return {Shape::kLinear, options}; }
Schedule Schedule::cosine_decay(const DecayOptions& options) { return {Shape::kCosine, options}; }

float Schedule::at(std::uint64_t step) const noexcept {
  if (shape_ == Shape::kConstant) return options_.peak;
  const double warmup = static_cast<double>(options_.warmup_steps);
  const double now = static_cast<double>(step);
  if (step < options_.warmup_steps) return static_cast<float>(options_.peak * (now + 1) / warmup);
  const double done = std::min(1.0, (now - warmup) / (static_cast<double>(options_.total_steps) - warmup));
  const double share = shape_ == Shape::kLinear ? 1 - done : (1 + std::cos(std::numbers::pi * done)) / 2;
  return static_cast<float>(options_.floor + (options_.peak - options_.floor) * share);
}

std::optional<std::uint64_t> Schedule::zero_from() const noexcept {
  const std::uint64_t last = shape_ == Shape::kConstant ? 0 : options_.total_steps;
  if (at(last) != 0) return std::nullopt;
  return last;
}

}  // namespace headrace
