// A device with memory of its own behind a slow bus: the copies of streams opened while it is slow take their
// time.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "headrace/devices/cpu/cpu_device.h"
#include "headrace/devices/cpu/cpu_stream.h"
#include "headrace/tests/support/discrete_device.h"

namespace headrace::test {

class SlowStream final : public Stream {
 public:
  SlowStream(std::unique_ptr<Stream> inner, std::chrono::microseconds delay)
      : inner_(std::move(inner)), delay_(delay) {}

  Device& device() const noexcept override { return inner_->device(); }
  void synchronize() override { inner_->synchronize(); }
  void record(Event& event) override { inner_->record(event); }
  void wait(const Event& event) override { inner_->wait(event); }
  void copy(void* to, const void* from, std::size_t bytes) override {
    inner_->call([delay = delay_] { std::this_thread::sleep_for(delay); });
    inner_->copy(to, from, bytes);
  }
  void fill(void* to, unsigned char value, std::size_t bytes) override { inner_->fill(to, value, bytes); }
  void call(std::function<void()> function) override { inner_->call(std::move(function)); }
  void begin_capture() override { inner_->begin_capture(); }
  std::unique_ptr<CapturedWork> end_capture() override { return inner_->end_capture(); }
  void launch(CapturedWork& work) override { inner_->launch(work); }

 private:
  std::unique_ptr<Stream> inner_;
  std::chrono::microseconds delay_;
};

class SlowBusDevice final : public Device {
 public:
  // `inner` is a CPU replica.
  explicit SlowBusDevice(std::unique_ptr<Device> inner)
      : threads_(dynamic_cast<CpuDevice&>(*inner).threads()), inner_(std::move(inner)) {}

  // Of each copy of the streams opened from now on. Kernels and collectives need streams that were opened before.
  void slow_down(std::chrono::microseconds delay) { delay_us_ = delay.count(); }

  const DeviceInfo& info() const noexcept override { return inner_.info(); }
  MemoryUse memory_use() const noexcept override { return inner_.memory_use(); }
  std::unique_ptr<Stream> create_stream() override {
    auto stream = std::make_unique<CpuStream>(*this, threads_);
    if (delay_us_ == 0) return stream;
    return std::make_unique<SlowStream>(std::move(stream), std::chrono::microseconds(delay_us_));
  }
  std::unique_ptr<Event> create_event() override { return inner_.create_event(); }
  std::unique_ptr<Event> create_timed_event() override { return inner_.create_timed_event(); }
  Buffer allocate(std::size_t bytes) override { return inner_.allocate(bytes); }
  Buffer allocate_pinned(std::size_t bytes) override { return inner_.allocate_pinned(bytes); }
  Kernels* kernels() noexcept override { return inner_.kernels(); }
  InputKernels* input_kernels() noexcept override { return inner_.input_kernels(); }
  void release(void* data, std::size_t bytes, MemoryPlace place) noexcept override {
    inner_.release(data, bytes, place);
  }

 private:
  int threads_;
  DiscreteDevice inner_;
  std::atomic<std::int64_t> delay_us_{0};
};

}  // namespace headrace::test
