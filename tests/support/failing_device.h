// A device with memory of its own that runs out of pinned memory, or is lost in the middle of a copy.
#pragma once

#include <atomic>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/input_kernels.h"
#include "headrace/tests/support/discrete_device.h"

namespace headrace::test {

// What it still does before it fails.
struct Lives {
  static constexpr int kAll = std::numeric_limits<int>::max();
  int pinned = kAll;  // allocations
  int copies = kAll;
  int conversions = kAll;
};

// Input kernels whose launches fail once the device is lost.
class LosingInputKernels final : public InputKernels {
 public:
  LosingInputKernels(Device& device, InputKernels& inner, int conversions)
      : device_(device), inner_(inner), conversions_(conversions) {}

  void convert_pixels(Stream& stream, const PixelConversion& conversion) override {
    if (conversions_.fetch_sub(1) <= 0) {
      throw DeviceError(ErrorCode::kDevice, "the kernel was not launched", device_.info().name,
                        "restart the machine");
    }
    inner_.convert_pixels(stream, conversion);
  }

 private:
  Device& device_;
  InputKernels& inner_;
  std::atomic<int> conversions_;
};

// A stream whose copies fail once the device is lost.
class LosingStream final : public Stream {
 public:
  LosingStream(Device& device, std::unique_ptr<Stream> inner, std::atomic<int>& copies)
      : device_(device), inner_(std::move(inner)), copies_(copies) {}

  Device& device() const noexcept override { return device_; }
  void synchronize() override { inner_->synchronize(); }
  void record(Event& event) override { inner_->record(event); }
  void wait(const Event& event) override { inner_->wait(event); }
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (copies_.fetch_sub(1) <= 0) {
      throw DeviceError(ErrorCode::kDevice, "the device fell off the bus", device_.info().name,
                        "restart the machine");
    }
    inner_->copy(to, from, bytes);
  }
  void fill(void* to, unsigned char value, std::size_t bytes) override { inner_->fill(to, value, bytes); }
  void call(std::function<void()> function) override { inner_->call(std::move(function)); }
  void begin_capture() override { inner_->begin_capture(); }
  std::unique_ptr<CapturedWork> end_capture() override { return inner_->end_capture(); }
  void launch(CapturedWork& work) override { inner_->launch(work); }

 private:
  Device& device_;
  std::unique_ptr<Stream> inner_;
  std::atomic<int>& copies_;
};

class FailingDevice final : public Device {
 public:
  FailingDevice(std::unique_ptr<Device> inner, Lives lives)
      : inner_(std::move(inner)),
        pinned_(lives.pinned),
        copies_(lives.copies),
        input_kernels_(*this, *inner_.input_kernels(), lives.conversions) {}

  const DeviceInfo& info() const noexcept override { return inner_.info(); }
  MemoryUse memory_use() const noexcept override { return inner_.memory_use(); }
  std::unique_ptr<Stream> create_stream() override {
    return std::make_unique<LosingStream>(*this, inner_.create_stream(), copies_);
  }
  std::unique_ptr<Event> create_event() override { return inner_.create_event(); }
  std::unique_ptr<Event> create_timed_event() override { return inner_.create_timed_event(); }
  Buffer allocate(std::size_t bytes) override { return inner_.allocate(bytes); }
  Buffer allocate_pinned(std::size_t bytes) override {
    if (pinned_.fetch_sub(1) > 0) return inner_.allocate_pinned(bytes);
    throw DeviceError(ErrorCode::kOutOfMemory, "no " + std::to_string(bytes) + " bytes of pinned memory",
                      info().name, "lower the prefetch depth or the global batch");
  }
  Kernels* kernels() noexcept override { return inner_.kernels(); }
  InputKernels* input_kernels() noexcept override { return &input_kernels_; }
  void release(void* data, std::size_t bytes, MemoryPlace place) noexcept override {
    inner_.release(data, bytes, place);
  }

 private:
  DiscreteDevice inner_;
  std::atomic<int> pinned_, copies_;
  LosingInputKernels input_kernels_;
};

}  // namespace headrace::test
