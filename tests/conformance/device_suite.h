// What every Device must do: memory, its accounting, its errors.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/tests/conformance/device_fixture.h"
#include "headrace/tests/support/gate.h"

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

// What memory in stream order must be on every device.

template <typename Target>
class StreamMemorySuite : public StreamFixture<Target> {};
TYPED_TEST_SUITE_P(StreamMemorySuite);

TYPED_TEST_P(StreamMemorySuite, IsThereForTheWorkBeforeItsRelease) {
  constexpr std::size_t kBytes = 1 << 20;
  const std::uint64_t before = this->device().memory_use().device_bytes;
  const Buffer seen = this->device().allocate_pinned(kBytes);
  Gate gate;
  this->a_->call(gate.blocker());
  {
    const Buffer mine = this->a_->allocate(kBytes);
    EXPECT_EQ(mine.size(), kBytes);
    EXPECT_EQ(mine.place(), MemoryPlace::kDevice);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mine.data()) % 64, 0U);
    this->a_->fill(mine.data(), 7, kBytes);
    const Buffer other = this->b_->allocate(kBytes);  // another stream's are other bytes
    this->b_->fill(other.data(), 9, kBytes);
    this->a_->copy(seen.data(), mine.data(), kBytes);
  }  // released before any of it has run
  gate.open();
  this->a_->synchronize();
  this->b_->synchronize();
  EXPECT_TRUE(std::all_of(seen.data(), seen.data() + kBytes, [](std::byte b) { return b == std::byte{7}; }));
  EXPECT_EQ(this->device().memory_use().device_bytes, before);
}

TYPED_TEST_P(StreamMemorySuite, ComesAndGoes) {
  const std::uint64_t before = this->device().memory_use().device_bytes;
  for (int round = 0; round < 200; ++round) {
    const Buffer one = this->a_->allocate(1 + 1000 * static_cast<std::size_t>(round));
    Buffer two = this->a_->allocate(4096);
    this->a_->fill(one.data(), static_cast<unsigned char>(round), one.size());
    this->a_->copy(two.data(), one.data(), 1);
    two = Buffer();
    unsigned char first = 0;
    this->a_->copy(&first, one.data(), 1);
    this->a_->synchronize();
    EXPECT_EQ(first, static_cast<unsigned char>(round));
  }
  EXPECT_FALSE(this->a_->allocate(0));
  this->a_->synchronize();
  EXPECT_EQ(this->device().memory_use().device_bytes, before);
}

TYPED_TEST_P(StreamMemorySuite, IsGivenBackAfterAnErrorToo) {
  const std::uint64_t before = this->device().memory_use().device_bytes;
  {
    const Buffer mine = this->a_->allocate(1000);
    this->fail_with(*this->a_, "on purpose");
  }
  EXPECT_THAT(this->error_of(*this->a_), ::testing::HasSubstr("on purpose"));
  EXPECT_EQ(this->device().memory_use().device_bytes, before);
}

TYPED_TEST_P(StreamMemorySuite, RunsOutWithTheSizeAndTheDevice) {
  constexpr std::size_t kTooMuch = std::size_t{1} << 60;
  try {
    const Buffer buffer = this->a_->allocate(kTooMuch);
    FAIL() << "allocated " << buffer.size() << " bytes";
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
    EXPECT_THAT(error.message(), ::testing::HasSubstr(std::to_string(kTooMuch)));
    EXPECT_EQ(error.device(), this->device().info().name);
  }
  EXPECT_TRUE(this->a_->allocate(100)) << "afterwards there is memory as before";
}

TYPED_TEST_P(StreamMemorySuite, IsUsedByWorkCapturedLater) {
  const Buffer mine = this->a_->allocate(64);
  this->a_->begin_capture();
  EXPECT_THROW(this->a_->allocate(64), DeviceError);
  this->a_->fill(mine.data(), 3, 64);
  const auto work = this->a_->end_capture();
  this->a_->launch(*work);
  EXPECT_EQ(this->template download<unsigned char>(*this->a_, mine), std::vector<unsigned char>(64, 3));
}

REGISTER_TYPED_TEST_SUITE_P(StreamMemorySuite, IsThereForTheWorkBeforeItsRelease, ComesAndGoes,
                            IsGivenBackAfterAnErrorToo, RunsOutWithTheSizeAndTheDevice, IsUsedByWorkCapturedLater);

}  // namespace headrace::test
