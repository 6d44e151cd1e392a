// Sums of vectors in one fixed order. Private to the CPU backend.
#pragma once

#include <cstdint>
#include <span>

namespace headrace::cpu {

// sum = the parts, at most kMaxSummed vectors of `count` elements, added as one pairwise tree ((0+1)+(2+3))+...,
// an odd one out moving up; sum may be parts[0].
void sum_tree(std::span<float* const> parts, float* sum, std::int64_t count);

}  // namespace headrace::cpu
