// What every Device must do: memory, its accounting, its errors.
#pragma once

#include <gmock/gmock.h>

#include <cstdint>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/tests/conformance/device_fixture.h"

namespace headrace::test {

template <typename Target>
class DeviceSuite : public DeviceFixture<Target> {
 protected:
  std::uint64_t device_bytes() { return this->device().memory_use().device_bytes; }
  std::uint64_t pinned_bytes() { return this->device().memory_use().pinned_bytes; }
};
TYPED_TEST_SUITE_P(DeviceSuite);

TYPED_TEST_P(DeviceSuite, NamesAreUniqueAndDescribed) {
  const DeviceInfo& first = this->device(0).info();
  EXPECT_NE(first.name, this->device(1).info().name);
  EXPECT_FALSE(first.description.empty());
  EXPECT_GT(first.memory_bytes, std::uint64_t{1} << 20);
}

TYPED_TEST_P(DeviceSuite, MemoryIsAlignedAndKnowsItsPlace) {
  for (const std::size_t bytes : {1, 63, 64, 4097, 5 << 20}) {
    const Buffer device = this->device().allocate(bytes);
    const Buffer pinned = this->device().allocate_pinned(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(device.data()) % 64, 0U) << bytes;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pinned.data()) % 64, 0U) << bytes;
    EXPECT_EQ(device.size(), bytes);
    EXPECT_EQ(device.place(), MemoryPlace::kDevice);
    EXPECT_EQ(pinned.place(), MemoryPlace::kPinned);
  }
}

TYPED_TEST_P(DeviceSuite, EveryByteIsCountedAndGivenBack) {
  {
    Buffer first = this->device().allocate(1000);
    const Buffer pinned = this->device().allocate_pinned(300);
    EXPECT_EQ(this->device_bytes(), 1000U);
    EXPECT_EQ(this->pinned_bytes(), 300U);

    const Buffer moved = std::move(first);
    first = this->device().allocate(24);
    EXPECT_EQ(this->device_bytes(), 1024U);
    first = Buffer();
    EXPECT_EQ(this->device_bytes(), 1000U);
    EXPECT_EQ(this->device(1).memory_use().device_bytes, 0U);
  }
  EXPECT_EQ(this->device_bytes(), 0U);
  EXPECT_EQ(this->pinned_bytes(), 0U);
}

TYPED_TEST_P(DeviceSuite, NoBytesAreAnEmptyBuffer) {
  const Buffer none = this->device().allocate(0);
  EXPECT_EQ(none.size(), 0U);
  EXPECT_FALSE(none);
}

TYPED_TEST_P(DeviceSuite, RunningOutOfMemoryNamesTheSizeAndTheDevice) {
  constexpr std::size_t kTooMuch = std::size_t{1} << 60;
  for (const std::size_t bytes : {kTooMuch, std::numeric_limits<std::size_t>::max() - 10}) {
    try {
      const Buffer buffer = this->device().allocate(bytes);
      FAIL() << "allocated " << buffer.size() << " bytes";
    } catch (const DeviceError& error) {
      EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
      EXPECT_THAT(error.message(), ::testing::HasSubstr(std::to_string(bytes)));
      EXPECT_EQ(error.device(), this->device().info().name);
    }
    EXPECT_THROW(this->device().allocate_pinned(bytes), DeviceError);
  }
  EXPECT_EQ(this->device_bytes(), 0U);
  EXPECT_EQ(this->pinned_bytes(), 0U);
}

TYPED_TEST_P(DeviceSuite, ThreadsMayAllocateAtOnce) {
  std::vector<std::thread> threads;
  for (std::size_t t = 1; t <= 4; ++t) {
    threads.emplace_back([&device = this->device(), t] {
      for (int i = 0; i < 200; ++i) {
        const Buffer one = device.allocate(64 * t);
        const Buffer other = device.allocate_pinned(32 * t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(this->device_bytes(), 0U);
  EXPECT_EQ(this->pinned_bytes(), 0U);
}

REGISTER_TYPED_TEST_SUITE_P(DeviceSuite, NamesAreUniqueAndDescribed, MemoryIsAlignedAndKnowsItsPlace,
                            EveryByteIsCountedAndGivenBack, NoBytesAreAnEmptyBuffer,
                            RunningOutOfMemoryNamesTheSizeAndTheDevice, ThreadsMayAllocateAtOnce);

}  // namespace headrace::test
