// How a long array is dealt to threads: packs first, the rest one by one. Private to the CUDA backend.
#pragma once

#include <cstdint>

#include "headrace/devices/cuda/math/host_device.h"

namespace headrace::cuda {

inline constexpr int kFlatThreads = 256;  // of a block

// Elements [0, packs * width) in packs, [packs * width, count) alone.
struct FlatSplit {
  std::int64_t packs;
  std::int64_t count;
  int width;
};

constexpr FlatSplit flat_split(std::int64_t count, int width) { return {count / width, count, width}; }

// Enough for each thread to have an item, but not more than max_blocks: the rest is a grid-stride loop. At
// least 1.
constexpr std::int64_t flat_blocks(const FlatSplit& split, std::int64_t max_blocks) {
  const std::int64_t tail = split.count - split.packs * split.width;
  const std::int64_t items = split.packs > tail ? split.packs : tail;
  const std::int64_t blocks = (items + kFlatThreads - 1) / kFlatThreads;
  return blocks < 1 ? 1 : blocks < max_blocks ? blocks : max_blocks;
}

// The share of thread `thread` of `threads`.
template <int kWidth, typename Work>
HEADRACE_HOST_DEVICE void run_share(const Work& work, const FlatSplit& split, std::int64_t thread,
                                    std::int64_t threads) {
  for (std::int64_t i = thread; i < split.packs; i += threads) work.template run<kWidth>(i * kWidth);
  for (std::int64_t i = split.packs * kWidth + thread; i < split.count; i += threads) work.template run<1>(i);
}

}  // namespace headrace::cuda
