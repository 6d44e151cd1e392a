// Samples for caches.
#pragma once

#include "headrace/cache/sample_cache.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {

// What record `index` holds: no two records alike, sizes from 1 to 5000, nothing that could be compressed.
inline Bytes content(std::uint64_t index) {
  Bytes bytes(1 + index * 37 % 5000);
  Philox random({.seed = index});
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next_u32());
  return bytes;
}

inline Bytes found(SampleCache& cache, std::uint64_t index) {
  Bytes scratch;
  const auto bytes = cache.find(index, scratch);
  return {bytes.begin(), bytes.end()};
}

inline bool holds(SampleCache& cache, std::uint64_t index) { return found(cache, index) == content(index); }

}  // namespace headrace::test
