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
  int ordinal = 0;          // the backend's number of the physical device
  std::string description;  // "Intel Xeon, 2 cores, AVX-512", "NVIDIA H100 80GB HBM3, sm_90"
  std::uint64_t memory_bytes = 0;
  // True when the host reads and writes device memory in place: a batch needs no copy.
  bool host_memory = true;
  std::string unusable = {};  // why it cannot be opened and what to do; empty where it can
};

// Bytes now held by live buffers of this device. Both are 0 after everything was released.
struct MemoryUse {
  std::uint64_t device_bytes = 0;
  std::uint64_t pinned_bytes = 0;
};

// Thread-safe. Outlives its streams, events and buffers.
class Device : public BufferOwner {
 public:
  virtual const DeviceInfo& info() const noexcept = 0;
  virtual MemoryUse memory_use() const noexcept = 0;
  // Bytes of device memory that could be allocated now, as far as the device knows.
  virtual std::uint64_t free_bytes() const {
    const std::uint64_t used = memory_use().device_bytes;
    return info().memory_bytes > used ? info().memory_bytes - used : 0;
  }

  virtual std::unique_ptr<Stream> create_stream() = 0;
  // One whose kernels start before those of other streams where both could: for what the rest waits for. On a
  // device that has no priorities a stream like any other.
  virtual std::unique_ptr<Stream> create_urgent_stream() { return create_stream(); }
  virtual std::unique_ptr<Event> create_event() = 0;
  // One that also knows when it was reached; dearer to record.
  virtual std::unique_ptr<Event> create_timed_event() = 0;

  // A stream of the embedding program, by the backend's own handle (of CUDA a cudaStream_t; 0 is the default
  // stream): for ordering its work after events and events after its work. What is returned owns nothing and waits
  // for nothing when it is destroyed; the stream itself must outlive it. DeviceError(kUnsupported) from a device
  // whose streams are not known to others.
  virtual std::unique_ptr<Stream> borrow_stream(std::uintptr_t /*handle*/) {
    throw DeviceError(ErrorCode::kUnsupported, "the device has no streams of other libraries", info().name,
                      "name no stream: the host waits for the batch");
  }

  // Uninitialised, aligned to at least 64 bytes. Throws DeviceError(kOutOfMemory) with sizes.
  virtual Buffer allocate(std::size_t bytes) = 0;
  virtual Buffer allocate_pinned(std::size_t bytes) = 0;

  // The device's mathematics, or nullptr where this build has none for it (input stage only).
  virtual Kernels* kernels() noexcept = 0;
  // For work in several parts, each submitted to a lane: a stream whose mathematics uses one of the device's
  // threads. So many lanes keep the device busy; where it is one, a lane is like any other stream. What
  // lane_kernels() computes has the same bits whatever the number of threads or lanes; they may be used on any
  // stream.
  virtual int lanes() const noexcept { return 1; }
  virtual std::unique_ptr<Stream> create_lane() { return create_stream(); }
  virtual Kernels* lane_kernels() noexcept { return kernels(); }
  // Why kernels() is nullptr, in words; empty where it is not, or where nobody knows.
  virtual std::string why_no_kernels() { return {}; }
  // What the input stage may leave to the device, or nullptr where the host must do all of it.
  virtual InputKernels* input_kernels() noexcept { return nullptr; }
};

}  // namespace headrace
