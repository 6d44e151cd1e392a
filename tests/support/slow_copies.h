// A device with memory of its own behind a slow bus: the copies of streams opened while it is slow take their
// time.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "headrace/tests/support/discrete_device.h"
#include "headrace/tests/support/stream_decorator.h"

namespace headrace::test {

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
