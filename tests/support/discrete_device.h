// Devices whose streams do more than the CPU's: memory of their own, slow copies.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/cpu/cpu_backend.h"
#include "headrace/devices/cpu/cpu_stream.h"
#include "headrace/devices/stream.h"

namespace headrace::test {

// A stream that does all as another does, for tests that change one thing about it.

class StreamDecorator : public Stream {
 public:
  explicit StreamDecorator(std::unique_ptr<Stream> inner) : inner_(std::move(inner)) {}

  Device& device() const noexcept override { return inner_->device(); }
  void synchronize() override { inner_->synchronize(); }
  void record(Event& event) override { inner_->record(event); }
  void wait(const Event& event) override { inner_->wait(event); }
  void follow(Stream& other) override {
    auto* decorated = dynamic_cast<StreamDecorator*>(&other);
    inner_->follow(decorated != nullptr ? *decorated->inner_ : other);
  }
  Buffer allocate(std::size_t bytes) override { return inner_->allocate(bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override { inner_->copy(to, from, bytes); }
  void fill(void* to, unsigned char value, std::size_t bytes) override { inner_->fill(to, value, bytes); }
  void call(std::function<void()> function) override { inner_->call(std::move(function)); }
  void begin_capture() override { inner_->begin_capture(); }
  std::unique_ptr<CapturedWork> end_capture() override { return inner_->end_capture(); }
  void launch(CapturedWork& work) override { inner_->launch(work); }
  void release(void* data, std::size_t bytes, MemoryPlace place) noexcept override {
    inner_->release(data, bytes, place);
  }

 private:
  std::unique_ptr<Stream> inner_;
};

// A CPU replica that pretends to have memory of its own, as a GPU has: what goes through pinned memory, copy
// streams and events is tested without one.

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

// A device with little memory left: it says so, or is out of memory once so many bytes are allocated.
class LimitedDevice final : public DiscreteDevice {
 public:
  LimitedDevice(std::unique_ptr<Device> inner, std::uint64_t free, std::uint64_t limit = ~std::uint64_t{0})
      : DiscreteDevice(std::move(inner)), free_(free), limit_(limit) {}

  std::uint64_t free_bytes() const override { return free_; }
  Buffer allocate(std::size_t bytes) override {
    if (memory_use().device_bytes + bytes > limit_) {
      throw DeviceError(ErrorCode::kOutOfMemory, "out of memory", info().name);
    }
    return DiscreteDevice::allocate(bytes);
  }

 private:
  std::uint64_t free_, limit_;
};

// A device with memory of its own behind a slow bus: the copies of streams opened while it is slow take their
// time.

class SlowStream final : public StreamDecorator {
 public:
  SlowStream(std::unique_ptr<Stream> inner, std::chrono::microseconds delay)
      : StreamDecorator(std::move(inner)), delay_(delay) {}

  void copy(void* to, const void* from, std::size_t bytes) override {
    call([delay = delay_] { std::this_thread::sleep_for(delay); });
    StreamDecorator::copy(to, from, bytes);
  }

 private:
  std::chrono::microseconds delay_;
};

class SlowBusDevice final : public DiscreteDevice {
 public:
  using DiscreteDevice::DiscreteDevice;

  // Of each copy of the streams opened from now on. Kernels and collectives need streams that were opened before.
  void slow_down(std::chrono::microseconds delay) { delay_us_ = delay.count(); }

  std::unique_ptr<Stream> create_stream() override {
    auto stream = DiscreteDevice::create_stream();
    if (delay_us_ == 0) return stream;
    return std::make_unique<SlowStream>(std::move(stream), std::chrono::microseconds(delay_us_));
  }

 private:
  std::atomic<std::int64_t> delay_us_{0};
};

}  // namespace headrace::test
