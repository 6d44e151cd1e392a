// Host functions in the order of a CUDA stream, and the exceptions they throw. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "headrace/devices/base/failures.h"

namespace headrace {

// The first exception of a stream's host functions. Thread-safe: CUDA calls them on its own thread.
class HostFailure {
 public:
  // Throws DeviceError if there is no memory for the word.
  explicit HostFailure(const std::string& device);
  ~HostFailure();
  HostFailure(const HostFailure&) = delete;
  HostFailure& operator=(const HostFailure&) = delete;

  // Returns a word for kernels, in pinned host memory: not 0 while failed().
  const std::uint32_t* word() const noexcept { return word_; }
  bool failed() const noexcept { return error_.any(); }
  void keep(std::exception_ptr error) noexcept;
  // Returns and removes the exception; null if there was none.
  std::exception_ptr take() noexcept;

 private:
  void mark(bool failed) noexcept;

  std::mutex mutex_;  // so that both change together
  FirstError error_;
  std::uint32_t* word_ = nullptr;
};

// Receives a host function's exception; changes when captured work moves to another stream.
using FailureSlot = std::atomic<HostFailure*>;

// Owns functions from their submission until CUDA has called them (or no longer will).
class HostCalls {
 public:
  // Submits `function` to `stream`; it is skipped if its stream has failed by then.
  void submit(std::function<void()> function, const FailureSlot& failure, cudaStream_t stream,
              const std::string& device);
  // Forgets finished calls. Not for those of a graph, which are called again.
  void collect() noexcept;

 private:
  struct Call {
    std::function<void()> function;
    const FailureSlot* failure;
    std::atomic<bool> over{false};
  };

  static void CUDART_CB run(void* call) noexcept;

  std::deque<std::unique_ptr<Call>> calls_;
};

}  // namespace headrace
