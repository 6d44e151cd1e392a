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
#include "headrace/tests/support/stream_decorator.h"

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
class LosingStream final : public StreamDecorator {
 public:
  LosingStream(Device& device, std::unique_ptr<Stream> inner, std::atomic<int>& copies)
      : StreamDecorator(std::move(inner)), device_(device), copies_(copies) {}

  Device& device() const noexcept override { return device_; }
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (copies_.fetch_sub(1) <= 0) {
      throw DeviceError(ErrorCode::kDevice, "the device fell off the bus", device_.info().name,
                        "restart the machine");
    }
    StreamDecorator::copy(to, from, bytes);
  }

 private:
  Device& device_;
  std::atomic<int>& copies_;
};

class FailingDevice final : public DiscreteDevice {
 public:
  FailingDevice(std::unique_ptr<Device> inner, Lives lives)
      : DiscreteDevice(std::move(inner)),
        pinned_(lives.pinned),
        copies_(lives.copies),
        input_kernels_(*this, *DiscreteDevice::input_kernels(), lives.conversions) {}

  std::unique_ptr<Stream> create_stream() override {
    return std::make_unique<LosingStream>(*this, DiscreteDevice::create_stream(), copies_);
  }
  Buffer allocate_pinned(std::size_t bytes) override {
    if (pinned_.fetch_sub(1) > 0) return DiscreteDevice::allocate_pinned(bytes);
    throw DeviceError(ErrorCode::kOutOfMemory, "no " + std::to_string(bytes) + " bytes of pinned memory",
                      info().name, "lower the prefetch depth or the global batch");
  }
  InputKernels* input_kernels() noexcept override { return &input_kernels_; }

 private:
  std::atomic<int> pinned_, copies_;
  LosingInputKernels input_kernels_;
};

}  // namespace headrace::test
