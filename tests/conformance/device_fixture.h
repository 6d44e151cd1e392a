// What the suites of the devices' interfaces share. `Target` says how a backend's devices are opened:
//   static std::string absent();              // why it cannot be tested here; empty when it can
//   static DeviceGroup open(int replicas);
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "headrace/devices/device_group.h"

namespace headrace::test {

template <typename Target>
class DeviceFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Target::absent(); !why.empty()) GTEST_SKIP() << why;
    devices_.emplace(Target::open(2));
  }

  Device& device(int replica = 0) { return (*devices_)[replica]; }

  // What the stream's earlier work left in `buffer`. Synchronizes.
  template <typename T>
  static std::vector<T> download(Stream& stream, const Buffer& buffer) {
    std::vector<T> values(buffer.size() / sizeof(T));
    stream.copy(values.data(), buffer.data(), values.size() * sizeof(T));
    stream.synchronize();
    return values;
  }

  // True when the event becomes ready in good time.
  static bool eventually(const Event& event) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!event.ready() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return event.ready();
  }

  // Long enough for work that is wrongly not held back to have run.
  static void linger() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

 private:
  std::optional<DeviceGroup> devices_;
};

// Two streams of one device, for the suites of the streams.
//
// Host functions of a GPU's streams share one thread: a test blocks in one of them at most, and looks at
// events, not at other host functions, while it does.

template <typename Target>
class StreamFixture : public DeviceFixture<Target> {
 protected:
  void SetUp() override {
    DeviceFixture<Target>::SetUp();
    if (this->IsSkipped()) return;
    a_ = this->device().create_stream();
    b_ = this->device().create_stream();
  }

  static void fail_with(Stream& stream, const char* message) {
    stream.call([message] { throw std::runtime_error(message); });
  }

  static std::string error_of(Stream& stream) {
    try {
      stream.synchronize();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  }

  std::unique_ptr<Stream> a_, b_;
};

}  // namespace headrace::test
