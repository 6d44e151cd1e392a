#include "headrace/train/optimizers.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "headrace/train/optimizers/schedule_forms.h"

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
