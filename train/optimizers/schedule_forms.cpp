// Linear and cosine decay, each with its own warm-up, and exponential decay.
#include "headrace/train/optimizers/schedule_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/train/optimizers.h"

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

// The one-cycle schedule.

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
                    "it has to rise over more than a step, and to fall after that");
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

// Piecewise constant schedules, and functions shared by schedules of several parts.

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
      throw ConfigError(fmt::format("a schedule's boundary at step {} does not lie after {}", boundary, before),
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

// Schedules made of schedules: a warm-up before one, and several in sequence.

namespace {

// Adds the bends of a part that covers the steps [begin, end).
void add_bends(const Schedule& part, std::uint64_t begin, std::uint64_t end, Steps& steps) {
  if (begin > 0) steps.push_back(begin);
  for (const std::uint64_t bend : std::visit([](const auto& form) { return bends(form); }, part.form())) {
    if (bend < end - begin) steps.push_back(begin + bend);
  }
}

constexpr std::uint64_t kForever = std::numeric_limits<std::uint64_t>::max();

}  // namespace

void check(const WarmUp& form) {
  if (form.steps == 0) throw ConfigError("a warm-up takes 1 step or more, got 0");
}

float rate_at(const WarmUp& form, std::uint64_t step) noexcept {
  const Schedule& then = form.then.front();
  if (step >= form.steps) return then.at(step - form.steps);
  return static_cast<float>(then.at(0) * (static_cast<double>(step) + 1) / static_cast<double>(form.steps));
}

Steps bends(const WarmUp& form) {
  Steps steps;
  add_bends(form.then.front(), form.steps, kForever, steps);
  return steps;
}

void check(const Chained& form) { check_boundaries("schedules", form.parts.size(), form.boundaries); }

float rate_at(const Chained& form, std::uint64_t step) noexcept {
  const std::size_t part = part_at(form.boundaries, step);
  return form.parts[part].at(step - (part == 0 ? 0 : form.boundaries[part - 1]));
}

Steps bends(const Chained& form) {
  Steps steps;
  for (std::size_t i = 0; i < form.parts.size(); ++i) {
    const std::uint64_t begin = i == 0 ? 0 : form.boundaries[i - 1];
    add_bends(form.parts[i], begin, i == form.boundaries.size() ? kForever : form.boundaries[i], steps);
  }
  return steps;
}

bool operator==(const WarmUp& a, const WarmUp& b) noexcept { return a.steps == b.steps && a.then == b.then; }

bool operator==(const Chained& a, const Chained& b) noexcept {
  return a.parts == b.parts && a.boundaries == b.boundaries;
}

}  // namespace headrace::schedules

namespace headrace {
namespace {

// Returns the first of the steps [begin, end) from which all of them have rate 0, or `end`. REQUIRES: rates only
// rise, only fall or stay.
std::uint64_t zero_since(const Schedule& schedule, std::uint64_t begin, std::uint64_t end) {
  if (schedule.at(end - 1) != 0) return end;
  std::uint64_t last_other = begin, zero = end - 1;  // the answer lies in [last_other, zero]
  while (last_other < zero) {
    const std::uint64_t middle = last_other + (zero - last_other) / 2;
    if (schedule.at(middle) == 0) {
      zero = middle;
    } else {
      last_other = middle + 1;
    }
  }
  return zero;
}

}  // namespace

Schedule::Schedule(float constant) : Schedule(schedules::Form(schedules::Constant{constant})) {}

Schedule::Schedule(schedules::Form form) : form_(std::move(form)) {
  std::visit([](const auto& of) { schedules::check(of); }, form_);
}

Schedule Schedule::linear_decay(const DecayOptions& options) {
  return Schedule(schedules::Decay{.options = options, .cosine = false});
}
Schedule Schedule::cosine_decay(const DecayOptions& options) {
  return Schedule(schedules::Decay{.options = options, .cosine = true});
}
Schedule Schedule::piecewise(PiecewiseOptions options) { return Schedule(schedules::Form(std::move(options))); }
Schedule Schedule::exponential_decay(const ExponentialOptions& options) {
  return Schedule(schedules::Form(options));
}
Schedule Schedule::one_cycle(const OneCycleOptions& options) { return Schedule(schedules::Form(options)); }
Schedule Schedule::warm_up(std::uint64_t steps, Schedule then) {
  return Schedule(schedules::WarmUp{.steps = steps, .then = {std::move(then)}});
}
Schedule Schedule::chained(std::vector<Schedule> parts, std::vector<std::uint64_t> boundaries) {
  return Schedule(schedules::Chained{.parts = std::move(parts), .boundaries = std::move(boundaries)});
}

float Schedule::at(std::uint64_t step) const noexcept {
  return std::visit([step](const auto& form) { return schedules::rate_at(form, step); }, form_);
}

std::optional<std::uint64_t> Schedule::zero_from() const {
  schedules::Steps bends = std::visit([](const auto& form) { return schedules::bends(form); }, form_);
  std::ranges::sort(bends);
  std::uint64_t end = std::numeric_limits<std::uint64_t>::max(), zero = end;
  while (!bends.empty() || end > 0) {
    const std::uint64_t begin = bends.empty() ? 0 : bends.back();
    if (!bends.empty()) bends.pop_back();
    if (begin == end) continue;
    zero = zero_since(*this, begin, end);
    if (zero > begin) break;
    end = begin;
  }
  if (zero == std::numeric_limits<std::uint64_t>::max()) return std::nullopt;
  return zero;
}

bool Schedule::operator==(const Schedule& other) const noexcept {
  return std::visit(
      [](const auto& a, const auto& b) {
        if constexpr (std::is_same_v<decltype(a), decltype(b)>) return a == b;
        return false;
      },
      form_, other.form_);
}

}  // namespace headrace
