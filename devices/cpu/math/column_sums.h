// Sums over the rows of a matrix. Private to the CPU backend.
#pragma once

#include <cstdint>

namespace headrace::cpu {

// Rows of one block are added in f32, blocks in f64, in one fixed order: the same bits with any number of
// threads, and an error that does not grow with the number of rows.
inline constexpr std::int64_t kSumBlock = 64;

// sums[c] = sum over rows of x[row * columns + c], times `factor`. In and Out are float or BFloat16, the sums of
// floats floats.
template <typename In, typename Out>
void column_sums(const In* x, Out* sums, std::int64_t rows, std::int64_t columns, float factor = 1.0F);

}  // namespace headrace::cpu
