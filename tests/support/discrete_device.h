// A CPU replica that pretends to have memory of its own, as a GPU has: what goes through pinned memory, copy
// streams and events is tested without one.
#pragma once

#include <cstring>
#include <memory>
#include <utility>

#include "headrace/devices/cpu/cpu_backend.h"
#include "headrace/devices/cpu/cpu_stream.h"

namespace headrace::test {

// Tests derive from it what differs in one thing more.
class DiscreteDevice : public Device {
 public:
  // `inner` is a CPU replica.
  explicit DiscreteDevice(std::unique_ptr<Device> inner)
      : inner_(std::move(inner)), info_(inner_->info()), threads_(dynamic_cast<CpuDevice&>(*inner_).threads()) {
    info_.host_memory = false;
  }

  const DeviceInfo& info() const noexcept override { return info_; }
  MemoryUse memory_use() const noexcept override { return inner_->memory_use(); }
  std::unique_ptr<Stream> create_stream() override { return std::make_unique<CpuStream>(*this, threads_); }
  std::unique_ptr<Event> create_event() override { return inner_->create_event(); }
  std::unique_ptr<Event> create_timed_event() override { return inner_->create_timed_event(); }
  // Filled with a pattern, so that bytes which were never copied show.
  Buffer allocate(std::size_t bytes) override {
    Buffer buffer = inner_->allocate(bytes);
    if (bytes > 0) std::memset(buffer.data(), 0xA5, bytes);
    return buffer;
  }
  Buffer allocate_pinned(std::size_t bytes) override { return inner_->allocate_pinned(bytes); }
  Kernels* kernels() noexcept override { return inner_->kernels(); }
  Kernels* lane_kernels() noexcept override { return inner_->lane_kernels(); }
  InputKernels* input_kernels() noexcept override { return inner_->input_kernels(); }
  void release(void* data, std::size_t bytes, MemoryPlace place) noexcept override {
    inner_->release(data, bytes, place);
  }

 protected:
  Device& inner() noexcept { return *inner_; }

 private:
  std::unique_ptr<Device> inner_;
  DeviceInfo info_;
  int threads_;
};

}  // namespace headrace::test
