// The division of work and the order of additions in an all-reduce on one GPU. Plain C++, for host and device.
// Private to the CUDA backend.
#pragma once

#include <cstdint>

namespace headrace::cuda {

inline constexpr int kMaxReplicas = 64;  // on one GPU

// A replica's part of a vector: begins on a multiple of 16 elements, so that no two replicas write one line.
struct Slice {
  std::int64_t begin = 0, end = 0;
};

constexpr Slice slice_of(std::int64_t elements, int replica, int replicas) noexcept {
  constexpr std::int64_t kLine = 16;
  const std::int64_t lines = (elements + kLine - 1) / kLine;
  const auto border = [&](std::int64_t r) {
    const std::int64_t at = lines * r / replicas * kLine;
    return at < elements ? at : elements;
  };
  return {.begin = border(replica), .end = border(replica + 1)};
}

// Returns value(0) + ... + value(count - 1) as the pairwise tree ((0+1)+(2+3))+..., an odd one out moving up; at
// most kMaxReplicas values. Each is read once, in order.
template <typename Value>
constexpr float pairwise_sum(int count, Value&& value) {
  constexpr int kLevels = 7;  // subtrees of 1, 2, 4 ... 64 values
  float sums[kLevels] = {};
  for (int i = 0; i < count; ++i) {
    float sum = value(i);
    int level = 0;
    for (; ((i >> level) & 1) != 0; ++level) sum = sums[level] + sum;
    sums[level] = sum;
  }
  // The remaining subtrees are those of count's bits, the latest values in the smallest one.
  int level = 0;
  while (((count >> level) & 1) == 0) ++level;
  float total = sums[level];
  for (++level; (count >> level) != 0; ++level) {
    if (((count >> level) & 1) != 0) total = sums[level] + total;
  }
  return total;
}

}  // namespace headrace::cuda
