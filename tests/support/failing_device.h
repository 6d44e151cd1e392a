// A device that is lost in the middle of a run: one of the calls that a host makes on it fails, and from then on
// all.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/cpu/cpu_event.h"
#include "headrace/devices/cpu/cpu_stream.h"
#include "headrace/devices/input_kernels.h"
#include "headrace/tests/support/discrete_device.h"
#include "headrace/tests/support/twin_kernels.h"

namespace headrace::test {

// How many calls of each kind the device still answers.
struct Lives {
  static constexpr int kAll = std::numeric_limits<int>::max();
  int pinned = kAll, allocations = kAll, stream_allocations = kAll;
  int streams = kAll, events = kAll;  // created
  int copies = kAll, fills = kAll, host_calls = kAll, conversions = kAll, decodings = kAll;
  int records = kAll, waits = kAll, follows = kAll;
  int captures = kAll, capture_ends = kAll, launches = kAll;
  int synchronizations = kAll;
  int event_looks = kAll, event_waits = kAll, event_times = kAll;  // Event::ready(), wait(), ns_since()
};

struct DeviceCall {
  const char* name;
  int Lives::*lives;
};

inline constexpr std::array kDeviceCalls{
    DeviceCall{"allocate_pinned", &Lives::pinned},
    DeviceCall{"allocate", &Lives::allocations},
    DeviceCall{"Stream::allocate", &Lives::stream_allocations},
    DeviceCall{"create_stream", &Lives::streams},
    DeviceCall{"create_event", &Lives::events},
    DeviceCall{"copy", &Lives::copies},
    DeviceCall{"fill", &Lives::fills},
    DeviceCall{"call", &Lives::host_calls},
    DeviceCall{"convert_pixels", &Lives::conversions},
    DeviceCall{"decode_jpegs", &Lives::decodings},
    DeviceCall{"record", &Lives::records},
    DeviceCall{"Stream::wait", &Lives::waits},
    DeviceCall{"follow", &Lives::follows},
    DeviceCall{"begin_capture", &Lives::captures},
    DeviceCall{"end_capture", &Lives::capture_ends},
    DeviceCall{"launch", &Lives::launches},
    DeviceCall{"synchronize", &Lives::synchronizations},
    DeviceCall{"Event::ready", &Lives::event_looks},
    DeviceCall{"Event::wait", &Lives::event_waits},
    DeviceCall{"Event::ns_since", &Lives::event_times},
};

// What is left of a device's lives. Thread-safe.
class Health {
 public:
  Health(std::string device, const Lives& lives) : device_(std::move(device)) {
    for (std::size_t i = 0; i < kDeviceCalls.size(); ++i) left_[i] = lives.*kDeviceCalls[i].lives;
  }

  // Throws once the device is lost, which a call without lives makes it.
  void spend(int Lives::*lives) {
    std::size_t i = 0;
    while (kDeviceCalls[i].lives != lives) ++i;
    if (left_[i].fetch_sub(1) <= 0) lost_ = true;
    if (!lost_) return;
    const bool memory = lives == &Lives::pinned;
    throw DeviceError(memory ? ErrorCode::kOutOfMemory : ErrorCode::kDevice,
                      std::string("it fell off the bus [") + kDeviceCalls[i].name + "]", device_,
                      memory ? "lower the prefetch depth or the global batch" : "restart the machine");
  }
  bool lost() const noexcept { return lost_; }

 private:
  std::string device_;
  std::array<std::atomic<int>, kDeviceCalls.size()> left_{};
  std::atomic<bool> lost_{false};
};

class LosingEvent final : public CpuEvent {
 public:
  LosingEvent(Health& health, CpuTiming timing) : CpuEvent(timing), health_(health) {}

  bool ready() const override {
    health_.spend(&Lives::event_looks);
    return CpuEvent::ready();
  }
  void wait() const override {
    health_.spend(&Lives::event_waits);
    CpuEvent::wait();
  }
  std::optional<std::int64_t> ns_since(const Event& earlier) const override {
    health_.spend(&Lives::event_times);
    return CpuEvent::ns_since(earlier);
  }

 private:
  Health& health_;
};

// A refused call leaves the stream as it was. synchronize() fails when the work is over: what the host gave to it
// may be destroyed then.
class LosingStream final : public CpuStream {
 public:
  LosingStream(Device& device, Health& health) : CpuStream(device, 1), health_(health) {}

  void synchronize() override {
    CpuStream::synchronize();
    health_.spend(&Lives::synchronizations);
  }
  void record(Event& event) override {
    health_.spend(&Lives::records);
    CpuStream::record(event);
  }
  void wait(const Event& event) override {
    health_.spend(&Lives::waits);
    CpuStream::wait(event);
  }
  void follow(Stream& other) override {
    health_.spend(&Lives::follows);
    CpuStream::follow(other);
  }
  Buffer allocate(std::size_t bytes) override {
    health_.spend(&Lives::stream_allocations);
    return CpuStream::allocate(bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    health_.spend(&Lives::copies);
    CpuStream::copy(to, from, bytes);
  }
  void fill(void* to, unsigned char value, std::size_t bytes) override {
    health_.spend(&Lives::fills);
    CpuStream::fill(to, value, bytes);
  }
  void call(std::function<void()> function) override {
    health_.spend(&Lives::host_calls);
    CpuStream::call(std::move(function));
  }
  void begin_capture() override {
    health_.spend(&Lives::captures);
    CpuStream::begin_capture();
  }
  std::unique_ptr<CapturedWork> end_capture() override {
    auto work = CpuStream::end_capture();
    health_.spend(&Lives::capture_ends);
    return work;
  }
  void launch(CapturedWork& work) override {
    health_.spend(&Lives::launches);
    CpuStream::launch(work);
  }

 private:
  Health& health_;
};

class LosingInputKernels final : public InputKernels {
 public:
  LosingInputKernels(Health& health, InputKernels& inner) : health_(health), inner_(inner) {}

  void convert_pixels(Stream& stream, const PixelConversion& conversion) override {
    health_.spend(&Lives::conversions);
    inner_.convert_pixels(stream, conversion);
  }
  bool decodes_jpegs() const noexcept override { return true; }
  void decode_jpegs(Stream& stream, const JpegDecoding& decoding) override {
    health_.spend(&Lives::decodings);
    decoder_.decode_jpegs(stream, decoding);
  }

 private:
  Health& health_;
  InputKernels& inner_;
  TwinInputKernels decoder_;
};

enum class BatchMemory { kOwn, kHosts };

// With memory of its own, or with the host's.
class FailingDevice final : public DiscreteDevice {
 public:
  explicit FailingDevice(std::unique_ptr<Device> device, const Lives& lives = {},
                         BatchMemory memory = BatchMemory::kOwn)
      : DiscreteDevice(std::move(device)),
        info_(DiscreteDevice::info()),
        health_(info_.name, lives),
        input_kernels_(health_, *inner().input_kernels()) {
    info_.host_memory = memory == BatchMemory::kHosts;
  }

  const DeviceInfo& info() const noexcept override { return info_; }
  std::unique_ptr<Stream> create_stream() override {
    health_.spend(&Lives::streams);
    return std::make_unique<LosingStream>(*this, health_);
  }
  std::unique_ptr<Event> create_event() override { return create_event(CpuTiming::kNo); }
  std::unique_ptr<Event> create_timed_event() override { return create_event(CpuTiming::kYes); }
  Buffer allocate(std::size_t bytes) override {
    health_.spend(&Lives::allocations);
    return DiscreteDevice::allocate(bytes);
  }
  Buffer allocate_pinned(std::size_t bytes) override {
    health_.spend(&Lives::pinned);
    return DiscreteDevice::allocate_pinned(bytes);
  }
  InputKernels* input_kernels() noexcept override { return &input_kernels_; }

  bool lost() const noexcept { return health_.lost(); }
  // One of the device's that works even when it is lost, for a test's own calls.
  std::unique_ptr<Stream> create_sound_stream() { return std::make_unique<CpuStream>(*this, 1); }

 private:
  std::unique_ptr<Event> create_event(CpuTiming timing) {
    health_.spend(&Lives::events);
    return std::make_unique<LosingEvent>(health_, timing);
  }

  DeviceInfo info_;
  Health health_;
  LosingInputKernels input_kernels_;
};

}  // namespace headrace::test
