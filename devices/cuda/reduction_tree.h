// An all-reduce on GPUs: the division of work, the order of additions, and how long a replica waits for the
// others. Private to the CUDA backend.
#pragma once

#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "headrace/devices/base/error.h"

namespace headrace::cuda {

// The division of work and the order of additions in an all-reduce on one GPU. Plain C++, for host and device.
//

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

namespace headrace {

// Returns HEADRACE_COLLECTIVE_TIMEOUT, from 1 to 86400 seconds; 30 if unset. Throws ConfigError for anything else.
inline std::chrono::seconds collective_timeout() {
  const char* variable = std::getenv("HEADRACE_COLLECTIVE_TIMEOUT");
  const std::string_view text = variable == nullptr ? std::string_view() : variable;
  if (text.empty()) return std::chrono::seconds(30);
  int seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end != text.data() + text.size() || seconds < 1 || seconds > 86400) {
    throw ConfigError("HEADRACE_COLLECTIVE_TIMEOUT is '" + std::string(text) + "'",
                      "it must be a number of seconds from 1 to 86400");
  }
  return std::chrono::seconds(seconds);
}

}  // namespace headrace
