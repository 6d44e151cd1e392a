// Schedules made of schedules: a warm-up before one, and several in sequence.
#include <algorithm>
#include <limits>

#include "headrace/devices/base/error.h"
#include "headrace/train/optimizers/schedule_forms.h"

namespace headrace::schedules {
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
