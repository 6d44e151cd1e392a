#include "headrace/devices/cpu/math/vector_norm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "headrace/devices/base/simd.h"
#include "headrace/devices/cpu/math/parallel.h"

namespace headrace::cpu {
namespace {

constexpr std::int64_t kNormLanes = 16, kNormBlock = 1024;
constexpr std::int64_t kNormGrain = row_grain(kNormBlock);

// The blocks [begin, end), of which the last one may be short: kNormLanes sums each.
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

}  // namespace

// In f32 within a block, in f64 from block to block.
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

}  // namespace headrace::cpu
