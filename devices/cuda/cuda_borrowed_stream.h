// A CUDA stream of the embedding program. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <string>

#include "headrace/devices/stream.h"

namespace headrace {

// Makes a GPU the calling thread's current device until the end of the scope: for calls on threads of the
// embedding program, whose current device must not change.
class CurrentDevice {
 public:
  // Throws DeviceError, which names the GPU `name`.
  CurrentDevice(int ordinal, const std::string& name);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int ordinal_;
  int before_ = 0;
};

// Owns nothing; cheap to make. Orders, copies and fills; refuses calls that need a stream's own memory
// (allocate(), call(), captures). Leaves the calling thread's current device unchanged.
class CudaBorrowedStream final : public Stream {
 public:
  CudaBorrowedStream(Device& device, cudaStream_t stream) : device_(device), stream_(stream) {}

  Device& device() const noexcept override { return device_; }

  void synchronize() override;
  void record(Event& event) override;
  void wait(const Event& event) override;
  void follow(Stream& other) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  void fill(void* to, unsigned char value, std::size_t bytes) override;

  Buffer allocate(std::size_t bytes) override;
  void call(std::function<void()> function) override;
  void begin_capture() override;
  std::unique_ptr<CapturedWork> end_capture() override;
  void launch(CapturedWork& work) override;
  void release(void* /*data*/, std::size_t /*bytes*/, MemoryPlace /*place*/) noexcept override {}

 private:
  const std::string& name() const noexcept;
  CurrentDevice current() const;
  [[noreturn]] void refuse(const std::string& call) const;

  Device& device_;
  cudaStream_t stream_;
};

}  // namespace headrace
