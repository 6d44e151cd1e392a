#include "headrace/devices/cpu/math/column_sums.h"

#include <algorithm>

#include "headrace/devices/base/simd.h"
#include "headrace/devices/cpu/math/element.h"
#include "headrace/devices/cpu/math/parallel.h"

namespace headrace::cpu {
namespace {

// So many columns at a time: the totals stay in registers and the first cache.
constexpr std::int64_t kColumns = 64;

template <typename In>
HEADRACE_INLINE void add_column_block(const In* x, double* totals, std::int64_t rows, std::int64_t columns,
                                      std::int64_t width) {
  float block[kColumns] = {};
  for (std::int64_t row = 0; row < rows; ++row) {
    const In* from = x + row * columns;
    for (std::int64_t c = 0; c < width; ++c) block[c] += value(from[c]);
  }
  for (std::int64_t c = 0; c < width; ++c) totals[c] += static_cast<double>(block[c]);
}

template <typename In, typename Out>
HEADRACE_INLINE void sum_columns(const In* x, Out* sums, std::int64_t rows, std::int64_t columns,
                                 std::int64_t width, float factor) {
  double totals[kColumns] = {};
  for (std::int64_t row = 0; row < rows; row += kSumBlock) {
    const std::int64_t count = rows - row < kSumBlock ? rows - row : kSumBlock;
    if (width == kColumns) {
      add_column_block(x + row * columns, totals, count, columns, kColumns);
    } else {
      add_column_block(x + row * columns, totals, count, columns, width);
    }
  }
  for (std::int64_t c = 0; c < width; ++c) {
    sums[c] = element<Out>(static_cast<float>(totals[c] * static_cast<double>(factor)));
  }
}

HEADRACE_SIMD_MATH void sum_column_strip(const float* x, float* sums, std::int64_t rows, std::int64_t columns,
                                         std::int64_t width, float factor) {
  sum_columns(x, sums, rows, columns, width, factor);
}
HEADRACE_SIMD_MATH void sum_column_strip(const BFloat16* x, float* sums, std::int64_t rows, std::int64_t columns,
                                         std::int64_t width, float factor) {
  sum_columns(x, sums, rows, columns, width, factor);
}
HEADRACE_SIMD_MATH void sum_column_strip(const BFloat16* x, BFloat16* sums, std::int64_t rows,
                                         std::int64_t columns, std::int64_t width, float factor) {
  sum_columns(x, sums, rows, columns, width, factor);
}

}  // namespace

template <typename In, typename Out>
void column_sums(const In* x, Out* sums, std::int64_t rows, std::int64_t columns, float factor) {
  const std::int64_t strips = (columns + kColumns - 1) / kColumns;
  parallel_ranges(strips, row_grain(rows * kColumns), [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t strip = first; strip < last; ++strip) {
      const std::int64_t column = strip * kColumns;
      sum_column_strip(x + column, sums + column, rows, columns, std::min(kColumns, columns - column), factor);
    }
  });
}
template void column_sums(const float*, float*, std::int64_t, std::int64_t, float);
template void column_sums(const BFloat16*, float*, std::int64_t, std::int64_t, float);
template void column_sums(const BFloat16*, BFloat16*, std::int64_t, std::int64_t, float);

}  // namespace headrace::cpu
