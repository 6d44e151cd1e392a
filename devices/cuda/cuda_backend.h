// Factories of the CUDA backend: devices, streams of the embedding program, the collective of one GPU. Private to
// it.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/collective.h"
#include "headrace/devices/cuda/cuda_stream.h"
#include "headrace/devices/cuda/rendezvous.h"
#include "headrace/devices/cuda/shared_gpu.h"
#include "headrace/devices/device.h"
#include "headrace/devices/input_kernels.h"
#include "headrace/devices/stream.h"

namespace headrace {

// One replica on a GPU.

// The GPU's input kernels.
class CudaInputKernels final : public InputKernels {
 public:
  void convert_pixels(Stream& stream, const PixelConversion& conversion) override;
  bool decodes_jpegs() const noexcept override { return true; }
  void decode_jpegs(Stream& stream, const JpegDecoding& decoding) override;
};

// Several logical replicas on one GPU share its context; each counts its own memory. Long-lived memory comes from
// cudaMalloc and cudaHostAlloc, allocated at the start and reused; short-lived memory comes from the streams'
// pool, which all replicas of the GPU share. Nothing is allocated inside a step.
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
  Buffer allocate_scratch(std::size_t bytes) override;
  // Opens the mathematics on the first call, which may take a second.
  Kernels* kernels() noexcept override;
  std::string why_no_kernels() override;
  InputKernels* input_kernels() noexcept override { return &input_kernels_; }

  void release(void* data, std::size_t bytes, MemoryPlace place) noexcept override;

 private:
  // Frees what allocate_scratch() gave.
  struct Scratch final : BufferOwner {
    void release(void* data, std::size_t bytes, MemoryPlace place) noexcept override;
  };

  void make_current() const;
  void load_input_kernels() const;
  // Throws DeviceError.
  void* allocate_memory(std::size_t bytes, MemoryPlace place);
  Buffer allocate(std::size_t bytes, MemoryPlace place);
  std::atomic<std::uint64_t>& counter(MemoryPlace place) noexcept;

  void make_kernels() noexcept;

  DeviceInfo info_;
  std::chrono::nanoseconds polling_;  // of its events
  CudaInputKernels input_kernels_;
  Scratch scratch_;
  std::optional<CudaPool> pool_;  // the streams'; exists once the context does
  std::atomic<std::uint64_t> device_bytes_{0};
  std::atomic<std::uint64_t> pinned_bytes_{0};
  int host_node_ = -1;  // the NUMA node beside the GPU; negative if unknown
  std::once_flag kernels_made_;
  std::string why_no_kernels_;        // by kernels_made_
  std::unique_ptr<Kernels> kernels_;  // by kernels_made_; after the counts of the memory that they return
};

// A CUDA stream of the embedding program.

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

// Sums and copies among logical replicas on one GPU.

// The replicas' streams meet on the GPU, by counters in its memory: the host waits for nothing, and each replica's
// step may be a separate captured graph, launched one after the other. Then each stream sums its slice of the
// vector over all replicas, and they meet again. At most kMaxWaiting.
//
// While a replica waits, the others' work must be able to start: see rendezvous.h. The constructor measures it,
// and throws DeviceError(kUnsupported) if it cannot. A wait that still does not end times out after
// HEADRACE_COLLECTIVE_TIMEOUT seconds (30) with DeviceError(kTimeout), and the group is cancelled.
class SharedGpuCollective final : public Collective {
 public:
  explicit SharedGpuCollective(DeviceGroup& devices);
  ~SharedGpuCollective() override;

  int local_replicas() const noexcept override { return devices_.size(); }
  void all_reduce_sum(int replica, const TensorView& tensor, Stream& stream) override;
  void broadcast(int replica, int root, const TensorView& tensor, Stream& stream) override;
  // A graph with branches would need uncounted queues.
  bool runs_beside() const noexcept override { return false; }
  const std::uint32_t* failure_word(int replica) const noexcept override;
  void abort(const std::string& reason) noexcept override;

 private:
  class Report;

  void check_side_by_side();
  void submit(int replica, const cuda::RendezvousCall& call, Stream& stream);
  std::string reason() const;

  DeviceGroup& devices_;
  std::optional<SharedGpu::Meeting> meeting_;  // of several replicas
  Buffer state_;                               // RendezvousState
  Buffer words_;                               // RendezvousWords
  unsigned long long patience_ns_;
  std::vector<std::shared_ptr<Report>> reports_;  // one per replica
  mutable std::mutex mutex_;
  std::string reason_;  // by mutex_; the host's
};

}  // namespace headrace
