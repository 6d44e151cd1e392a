// What each form of a schedule computes. Private to the room.
//
//   check(form)          throws ConfigError for what cannot be
//   rate_at(form, step)  the rate
//   bends(form)          steps, 0 not among them, between which rates only rise, only fall or stay
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/train/optimizers.h"

namespace headrace::schedules {

using Steps = std::vector<std::uint64_t>;

inline void check(const Constant&) {}
inline float rate_at(const Constant& form, std::uint64_t) noexcept { return form.rate; }
inline Steps bends(const Constant&) { return {}; }

void check(const Decay& form);
float rate_at(const Decay& form, std::uint64_t step) noexcept;
Steps bends(const Decay& form);

void check(const PiecewiseOptions& form);
float rate_at(const PiecewiseOptions& form, std::uint64_t step) noexcept;
Steps bends(const PiecewiseOptions& form);

void check(const ExponentialOptions& form);
float rate_at(const ExponentialOptions& form, std::uint64_t step) noexcept;
Steps bends(const ExponentialOptions& form);

void check(const OneCycleOptions& form);
float rate_at(const OneCycleOptions& form, std::uint64_t step) noexcept;
Steps bends(const OneCycleOptions& form);

void check(const WarmUp& form);
float rate_at(const WarmUp& form, std::uint64_t step) noexcept;
Steps bends(const WarmUp& form);

void check(const Chained& form);
float rate_at(const Chained& form, std::uint64_t step) noexcept;
Steps bends(const Chained& form);

bool operator==(const WarmUp& a, const WarmUp& b) noexcept;
bool operator==(const Chained& a, const Chained& b) noexcept;

// ConfigError unless `rate`, called `what`, is a finite number that is not negative.
void check_rate(const char* what, float rate);
// ConfigError unless there is one of `what` more than boundaries, which ascend from 1 on.
void check_boundaries(const char* what, std::size_t count, const Steps& boundaries);
// Of what begins at 0 and at each boundary: the one that `step` belongs to.
std::size_t part_at(const Steps& boundaries, std::uint64_t step) noexcept;

}  // namespace headrace::schedules
