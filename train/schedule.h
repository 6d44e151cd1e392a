// The learning rate as a function of the optimizer's step, evaluated on the host once a step.
#pragma once

#include <cstdint>
#include <optional>

namespace headrace {

// Linear from 0 to `peak` over the warm-up, then down to `floor` at `total_steps`, and there it stays.
struct DecayOptions {
  float peak = 1e-3F;
  float floor = 0;
  std::uint64_t warmup_steps = 0;
  std::uint64_t total_steps = 1;
};

class Schedule {
 public:
  Schedule(float constant) : shape_(Shape::kConstant), options_{.peak = constant} {}  // NOLINT: implicit by design

  static Schedule linear_decay(const DecayOptions& options);
  static Schedule cosine_decay(const DecayOptions& options);

  // Steps count from 0.
  float at(std::uint64_t step) const noexcept;
  // The step from which on the rate is 0 for good; nothing where there is none.
  std::optional<std::uint64_t> zero_from() const noexcept;

 private:
  enum class Shape { kConstant, kLinear, kCosine };

  Schedule(Shape shape, const DecayOptions& options);

  Shape shape_;
  DecayOptions options_;
};

}  // namespace headrace
