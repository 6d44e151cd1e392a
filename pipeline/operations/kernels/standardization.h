// Numbers minus their mean, by their standard deviation.
#pragma once

#include <cstdint>

namespace headrace {

// to[i] = (from[i] - m) / max(s, 1 / sqrt(count)): m is the mean and s the standard deviation of all numbers,
// summed exactly for u8 and in double for f32, each rounded to f32. REQUIRES: count > 0.
void standardize(const std::uint8_t* from, std::int64_t count, float* to);
void standardize(const float* from, std::int64_t count, float* to);

}  // namespace headrace
