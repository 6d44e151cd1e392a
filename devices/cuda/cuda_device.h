// One replica on a GPU. Private to the CUDA backend.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "headrace/devices/cuda/cuda_pool.h"
#include "headrace/devices/device.h"
#include "headrace/devices/input_kernels.h"

namespace headrace {

// The GPU's input kernels.
class CudaInputKernels final : public InputKernels {
 public:
  void convert_pixels(Stream& stream, const PixelConversion& conversion) override;
};

// Several logical replicas on one GPU share its context; each counts its own memory. Long-lived memory comes from
// cudaMalloc and cudaHostAlloc, allocated at the start and reused; short-lived memory comes from the streams'
// pool. Nothing is allocated inside a step.
class CudaDevice final : public Device {
 public:
  CudaDevice(DeviceInfo info, const std::string& name);
  ~CudaDevice() override;

  const DeviceInfo& info() const noexcept override { return info_; }
  MemoryUse memory_use() const noexcept override;
  std::uint64_t free_bytes() const override;

  std::unique_ptr<Stream> create_stream() override;
  std::unique_ptr<Stream> create_urgent_stream() override;
  std::unique_ptr<Stream> borrow_stream(std::uintptr_t handle) override;
  std::unique_ptr<Event> create_event() override;
  std::unique_ptr<Event> create_timed_event() override;
  Buffer allocate(std::size_t bytes) override { return allocate(bytes, MemoryPlace::kDevice); }
  Buffer allocate_pinned(std::size_t bytes) override { return allocate(bytes, MemoryPlace::kPinned); }
  // Opens the mathematics on the first call, which may take a second.
  Kernels* kernels() noexcept override;
  std::string why_no_kernels() override;
  InputKernels* input_kernels() noexcept override { return &input_kernels_; }

  void release(void* data, std::size_t bytes, MemoryPlace place) noexcept override;

 private:
  void make_current() const;
  void load_input_kernels() const;
  Buffer allocate(std::size_t bytes, MemoryPlace place);
  std::atomic<std::uint64_t>& counter(MemoryPlace place) noexcept;

  void make_kernels() noexcept;

  DeviceInfo info_;
  std::once_flag kernels_made_;
  std::unique_ptr<Kernels> kernels_;  // by kernels_made_
  std::string why_no_kernels_;        // by kernels_made_
  CudaInputKernels input_kernels_;
  std::optional<CudaPool> pool_;  // the streams'; exists once the context does
  std::atomic<std::uint64_t> device_bytes_{0};
  std::atomic<std::uint64_t> pinned_bytes_{0};
};

}  // namespace headrace
