// The learning rate as a function of the optimizer's step, evaluated on the host once a step.
//
// Steps are optimizer steps, from 0: one for each update, however many batches it accumulates and whatever an
// epoch is. Every schedule is data: it can be compared, and written down with its optimizer (optimizers.h).
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

class OptionVisitor;

// Linear from 0 to `peak` over the warm-up, then down to `floor` at `total_steps`, and there it stays.
struct DecayOptions {
  float peak = 1e-3F;
  float floor = 0;
  std::uint64_t warmup_steps = 0;
  std::uint64_t total_steps = 1;

  bool operator==(const DecayOptions&) const = default;
};

// rates[0] up to the step boundaries[0], rates[1] from there on, and so forth: one rate more than boundaries.
struct PiecewiseOptions {
  std::vector<float> rates = {};
  std::vector<std::uint64_t> boundaries = {};  // ascending

  bool operator==(const PiecewiseOptions&) const = default;
};

// initial * factor^(step / every_steps); in a staircase the exponent is rounded down.
struct ExponentialOptions {
  float initial = 1e-3F;
  float factor = 0.96F;  // in (0, 1]
  std::uint64_t every_steps = 1;
  bool staircase = false;

  bool operator==(const ExponentialOptions&) const = default;
};

// L. Smith's, as PyTorch has it: from peak / initial_divisor up to `peak` at step total_steps * warmup_share - 1,
// from there down to peak / initial_divisor / final_divisor at the last step, and there it stays. Along half a
// cosine each, or along lines.
struct OneCycleOptions {
  float peak = 1e-2F;
  std::uint64_t total_steps = 2;
  float warmup_share = 0.3F;
  float initial_divisor = 25, final_divisor = 1e4F;
  bool linear = false;

  bool operator==(const OneCycleOptions&) const = default;
};

// Show the options to a visitor.
void show(DecayOptions& options, OptionVisitor& visit);
void show(PiecewiseOptions& options, OptionVisitor& visit);
void show(ExponentialOptions& options, OptionVisitor& visit);
void show(OneCycleOptions& options, OptionVisitor& visit);

class Schedule;

// What a schedule can be.
namespace schedules {

struct Constant {
  float rate = 0;

  bool operator==(const Constant&) const = default;
};
struct Decay {
  DecayOptions options = {};
  bool cosine = false;

  bool operator==(const Decay&) const = default;
};
struct WarmUp {
  std::uint64_t steps = 0;
  std::vector<Schedule> then = {};  // one
};
struct Chained {
  std::vector<Schedule> parts = {};
  std::vector<std::uint64_t> boundaries = {};
};
using Form = std::variant<Constant, Decay, PiecewiseOptions, ExponentialOptions, OneCycleOptions, WarmUp, Chained>;

}  // namespace schedules

// A value. The factories throw ConfigError for what cannot be.
class Schedule {
 public:
  Schedule(float constant);  // NOLINT: implicit by design

  static Schedule linear_decay(const DecayOptions& options);
  static Schedule cosine_decay(const DecayOptions& options);
  static Schedule piecewise(PiecewiseOptions options);
  static Schedule exponential_decay(const ExponentialOptions& options);
  static Schedule one_cycle(const OneCycleOptions& options);
  // Linear from 0 to the first rate of `then`, which step `steps` - 1 has reached; then `then`, counted from its
  // own 0.
  static Schedule warm_up(std::uint64_t steps, Schedule then);
  // parts[0] up to the step boundaries[0], parts[1] from there on, and so forth, each counted from its own 0.
  static Schedule chained(std::vector<Schedule> parts, std::vector<std::uint64_t> boundaries);

  // Steps count from 0.
  float at(std::uint64_t step) const noexcept;
  // The first step from which on the rate is 0 for good; nothing where there is none.
  std::optional<std::uint64_t> zero_from() const;

  const schedules::Form& form() const noexcept { return form_; }
  bool operator==(const Schedule& other) const noexcept;

 private:
  explicit Schedule(schedules::Form form);

  schedules::Form form_;
};

}  // namespace headrace
