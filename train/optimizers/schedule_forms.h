// Computes each form of a schedule. Private to this folder.
//
//   check(form)          throws ConfigError if the form is invalid
//   rate_at(form, step)  returns the rate
//   bends(form)          returns the steps, without 0, between which rates only rise, only fall or stay
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/train/optimizers.h"

namespace headrace::schedules {

using Steps = std::vector<std::uint64_t>;

void check(const Constant& form);
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

// Throws ConfigError, naming `what`, unless `rate` is finite and not negative.
void check_rate(const char* what, float rate);
// Throws ConfigError unless `count` is one more than there are boundaries, which must ascend from 1 on.
void check_boundaries(const char* what, std::size_t count, const Steps& boundaries);
// Returns the index of the part that `step` belongs to; parts begin at 0 and at each boundary.
std::size_t part_at(const Steps& boundaries, std::uint64_t step) noexcept;

}  // namespace headrace::schedules
