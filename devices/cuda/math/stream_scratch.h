// Memory for data that kernels pass to the next kernel, one piece per stream. Private to the CUDA backend.
#pragma once

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/device.h"

struct CUstream_st;  // CUDA's

namespace headrace::cuda {

// Streams of one device run at the same time, so each has its own. Work captured on a stream keeps using that
// stream's scratch wherever it is launched. Thread-safe. Nothing is freed before the scratch itself: captured work
// may refer to it.
class StreamScratch {
 public:
  // REQUIRES: the device outlives it.
  explicit StreamScratch(Device& device) : device_(device) {}

  // Returns at least `bytes`, at the same address until the stream asks for more than before. Only then and at
  // first does it allocate, even while the stream captures: more than is needed if there is room. Throws
  // DeviceError(kOutOfMemory).
  void* reserve(CUstream_st* stream, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = current_.find(stream);
    const std::size_t before = found == current_.end() ? 0 : all_[found->second].size();
    if (found != current_.end() && before >= bytes) return all_[found->second].data();
    all_.push_back(allocate(std::max({bytes, 2 * before, kFirstBytes}), bytes));
    current_.insert_or_assign(stream, all_.size() - 1);
    return all_.back().data();
  }

 private:
  static constexpr std::size_t kFirstBytes = std::size_t{1} << 20;

  Buffer allocate(std::size_t wanted, std::size_t needed) {
    try {
      return device_.allocate_scratch(wanted);
    } catch (const DeviceError& error) {
      if (error.code() != ErrorCode::kOutOfMemory || needed == wanted) throw;
    }
    return device_.allocate_scratch(needed);
  }

  Device& device_;
  std::mutex mutex_;
  std::unordered_map<CUstream_st*, std::size_t> current_;  // by mutex_; index in all_
  std::vector<Buffer> all_;                                // by mutex_
};

}  // namespace headrace::cuda
