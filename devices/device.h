// One place that holds memory and runs streams: a CPU replica or a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/buffer.h"
#include "headrace/devices/event.h"
#include "headrace/devices/stream.h"

namespace HEADRACE_API headrace {

class InputKernels;
class Kernels;

enum class DeviceKind { kCpu, kCuda };

struct DeviceInfo {
  std::string name;  // "cpu:0", "cuda:1": unique within a group
  DeviceKind kind = DeviceKind::kCpu;
  int ordinal = 0;          // of the physical device, by the backend's count
  std::string description;  // "Intel Xeon, 2 cores, AVX-512", "NVIDIA H100 80GB HBM3, sm_90"
  std::uint64_t memory_bytes = 0;
  // True if the host reads and writes device memory in place: a batch needs no copy.
  bool host_memory = true;
  std::string unusable = {};  // why it cannot be opened and what to do; empty if it can
};

// Bytes held by live buffers of a device. Both are 0 once everything has been released.
struct MemoryUse {
  std::uint64_t device_bytes = 0;
  std::uint64_t pinned_bytes = 0;
};

// Thread-safe. Outlives its streams, events and buffers.
class Device : public BufferOwner {
 public:
  virtual const DeviceInfo& info() const noexcept = 0;
  virtual MemoryUse memory_use() const noexcept = 0;
  // Returns the bytes of device memory that could be allocated now, as far as the device knows.
  virtual std::uint64_t free_bytes() const {
    const std::uint64_t used = memory_use().device_bytes;
    return info().memory_bytes > used ? info().memory_bytes - used : 0;
  }

  // Allocates device memory for the device's own kernels, which keep it: memory_use() does not count it. Throws
  // DeviceError(kOutOfMemory).
  virtual Buffer allocate_scratch(std::size_t bytes) { return allocate(bytes); }

  virtual std::unique_ptr<Stream> create_stream() = 0;
  // Creates a high-priority stream, for work that other streams wait for: its kernels start first if both could
  // start. An ordinary stream on a device without priorities.
  virtual std::unique_ptr<Stream> create_urgent_stream() { return create_stream(); }
  virtual std::unique_ptr<Event> create_event() = 0;
  // Creates an event that also knows when it was reached; costs more to record.
  virtual std::unique_ptr<Event> create_timed_event() = 0;

  // Wraps a stream of the embedding program, given the backend's handle (for CUDA a cudaStream_t; 0 is the default
  // stream), to order its work after events and events after its work. The wrapper owns nothing and waits for
  // nothing when destroyed; the stream must outlive it. Throws DeviceError(kUnsupported) if other libraries do not
  // know the device's streams.
  virtual std::unique_ptr<Stream> borrow_stream(std::uintptr_t /*handle*/) {
    throw DeviceError(ErrorCode::kUnsupported, "the device has no streams of other libraries", info().name,
                      "name no stream: the host waits for the batch");
  }

  // Both return uninitialised memory, aligned to at least 64 bytes. Throw DeviceError(kOutOfMemory) with sizes.
  virtual Buffer allocate(std::size_t bytes) = 0;
  virtual Buffer allocate_pinned(std::size_t bytes) = 0;

  // Returns the device's mathematics, or nullptr if this build has none for it (input stage only).
  virtual Kernels* kernels() noexcept = 0;
  // A lane is a stream whose mathematics uses one of the device's threads, for work in several parts. lanes() of
  // them keep the device busy; if it is 1, a lane is an ordinary stream. Results of lane_kernels() have the same
  // bits whatever the number of threads or lanes; they may be used on any stream.
  virtual int lanes() const noexcept { return 1; }
  virtual std::unique_ptr<Stream> create_lane() { return create_stream(); }
  virtual Kernels* lane_kernels() noexcept { return kernels(); }
  // Returns why kernels() is nullptr, in words; empty if it is not, or if the reason is unknown.
  virtual std::string why_no_kernels() { return {}; }
  // Returns the input work that the device can do, or nullptr if the host must do all of it.
  virtual InputKernels* input_kernels() noexcept { return nullptr; }
};

}  // namespace headrace
