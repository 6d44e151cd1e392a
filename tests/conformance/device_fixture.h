// What the suites of the devices' interfaces share. `Target` says how a backend's devices are opened:
//   static std::string absent();              // why it cannot be tested here; empty when it can
//   static DeviceGroup open(int replicas);
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
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

}  // namespace headrace::test
