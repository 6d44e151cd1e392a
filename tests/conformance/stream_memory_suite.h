// What memory in stream order must be on every device.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/tests/conformance/stream_fixture.h"
#include "headrace/tests/support/gate.h"

namespace headrace::test {

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
