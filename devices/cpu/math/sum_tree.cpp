#include "headrace/devices/cpu/math/sum_tree.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "headrace/devices/cpu/math/parallel.h"
#include "headrace/devices/kernels.h"

namespace headrace::cpu {
namespace {

constexpr std::int64_t kTreeBlock = 1024;  // elements; a few blocks stay in the first-level cache
constexpr std::size_t kTreeDepth = std::bit_width(Kernels::kMaxSummed - 1);
using Block = float[kTreeBlock];

void add_block(float* into, const float* from, std::int64_t count) noexcept {
  for (std::int64_t i = 0; i < count; ++i) into[i] += from[i];
}

// The elements [at, at + count) of the parts, no more than a block. `spare`: a block for each level below this
// one.
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

void sum_tree(std::span<float* const> parts, float* sum, std::int64_t count) {
  parallel_ranges(count, kTreeBlock * 16, [&](std::int64_t begin, std::int64_t end) {
    alignas(64) Block spare[kTreeDepth];
    for (std::int64_t at = begin; at < end; at += kTreeBlock) {
      sum_block_tree(parts, at, std::min(kTreeBlock, end - at), sum + at, spare);
    }
  });
}

}  // namespace headrace::cpu
