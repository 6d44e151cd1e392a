// Memory for data that kernels pass to the next kernel, one piece per stream. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace headrace::cuda {

// Streams of one device run at the same time, so each has its own. Work captured on a stream keeps using that
// stream's scratch wherever it is launched. Thread-safe. Nothing is freed before the scratch itself: captured work
// may refer to it.
class StreamScratch {
 public:
  explicit StreamScratch(std::string device) : device_(std::move(device)) {}
  ~StreamScratch();
  StreamScratch(const StreamScratch&) = delete;
  StreamScratch& operator=(const StreamScratch&) = delete;

  // Returns at least `bytes` on the current device, at the same address until the stream asks for more than
  // before. Only then and at first does it allocate, even while the stream captures. Throws
  // DeviceError(kOutOfMemory).
  void* reserve(cudaStream_t stream, std::size_t bytes);

 private:
  struct Piece {
    void* data = nullptr;
    std::size_t bytes = 0;
  };

  Piece allocate(std::size_t bytes);

  std::string device_;
  std::mutex mutex_;
  std::unordered_map<cudaStream_t, Piece> current_;  // by mutex_
  std::vector<void*> all_;                           // by mutex_
};

}  // namespace headrace::cuda
