#include "headrace/devices/cpu/math/elementwise.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "headrace/devices/base/simd.h"
#include "headrace/devices/cpu/math/parallel.h"

namespace headrace::cpu {
namespace {

// The number of columns processed together: the totals stay in registers and the first-level cache.
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

constexpr std::int64_t kNormLanes = 16, kNormBlock = 1024;
constexpr std::int64_t kNormGrain = row_grain(kNormBlock);

// Sums the blocks [begin, end), the last of which may be short: kNormLanes sums each.
HEADRACE_SIMD_MATH void square_blocks(const float* x, std::int64_t count, std::int64_t begin, std::int64_t end,
                                      float* sums) {
  for (std::int64_t block = begin; block < end; ++block) {
    std::int64_t i = block * kNormBlock;
    const std::int64_t last = count - i < kNormBlock ? count : i + kNormBlock;
    float lanes[kNormLanes] = {};
    for (; i + kNormLanes <= last; i += kNormLanes) {
      for (std::int64_t lane = 0; lane < kNormLanes; ++lane) lanes[lane] += x[i + lane] * x[i + lane];
    }
    for (; i < last; ++i) lanes[0] += x[i] * x[i];
    for (std::int64_t lane = 0; lane < kNormLanes; ++lane) sums[block * kNormLanes + lane] = lanes[lane];
  }
}

constexpr std::int64_t kTreeBlock = 1024;  // elements; a few blocks stay in the first-level cache
constexpr std::size_t kTreeDepth = std::bit_width(kernel::kMaxSummed - 1);
using Block = float[kTreeBlock];

void add_block(float* into, const float* from, std::int64_t count) noexcept {
  for (std::int64_t i = 0; i < count; ++i) into[i] += from[i];
}

// Sums the elements [at, at + count) of the parts, at most a block. `spare`: one block for each level below.
void sum_block_tree(std::span<float* const> parts, std::int64_t at, std::int64_t count, float* sum,
                    Block* spare) noexcept {
  if (parts.size() == 1) {
    if (sum != parts[0] + at) std::memcpy(sum, parts[0] + at, static_cast<std::size_t>(count) * sizeof(float));
    return;
  }
  if (parts.size() == 2) {
    const float *a = parts[0] + at, *b = parts[1] + at;
    for (std::int64_t i = 0; i < count; ++i) sum[i] = a[i] + b[i];
    return;
  }
  const std::size_t left = std::bit_floor(parts.size() - 1);
  sum_block_tree(parts.first(left), at, count, sum, spare);
  if (parts.size() - left == 1) return add_block(sum, parts[left] + at, count);
  sum_block_tree(parts.subspan(left), at, count, *spare, spare + 1);
  add_block(sum, *spare, count);
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

// Adds in f32 within a block, in f64 from block to block.
double sum_of_squares(const float* x, std::int64_t count) {
  const std::int64_t blocks = (count + kNormBlock - 1) / kNormBlock;
  std::vector<float> sums(static_cast<std::size_t>(blocks * kNormLanes));
  parallel_ranges(blocks, kNormGrain,
                  [&](std::int64_t begin, std::int64_t end) { square_blocks(x, count, begin, end, sums.data()); });
  double total = 0;
  for (const float sum : sums) total += static_cast<double>(sum);
  return total;
}

void clip_factor(float max_norm, GradientNorm& norm) {
  const double length = std::sqrt(norm.squares), limit = max_norm;
  if (length <= limit) {
    norm.factor = 1;
  } else {
    norm.factor =
        std::isfinite(length) ? static_cast<float>(limit / length) : std::numeric_limits<float>::quiet_NaN();
  }
}

void sum_tree(std::span<float* const> parts, float* sum, std::int64_t count) {
  parallel_ranges(count, kTreeBlock * 16, [&](std::int64_t begin, std::int64_t end) {
    alignas(64) Block spare[kTreeDepth];
    for (std::int64_t at = begin; at < end; at += kTreeBlock) {
      sum_block_tree(parts, at, std::min(kTreeBlock, end - at), sum + at, spare);
    }
  });
}

}  // namespace headrace::cpu
