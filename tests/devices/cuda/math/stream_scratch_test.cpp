#include "headrace/devices/cuda/math/stream_scratch.h"

#include <gtest/gtest.h>

#include "headrace/tests/support/discrete_device.h"

namespace headrace::cuda {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

CUstream_st* stream(std::uintptr_t number) { return reinterpret_cast<CUstream_st*>(number); }

TEST(StreamScratch, IsOnePieceAStreamThatGrowsByDoubling) {
  CpuDevice device("cpu:0");
  {
    StreamScratch scratch(device);
    void* const first = scratch.reserve(stream(1), 10);
    EXPECT_EQ(scratch.reserve(stream(1), kMiB), first);
    EXPECT_NE(scratch.reserve(stream(2), 10), first);
    EXPECT_EQ(device.memory_use().device_bytes, 2 * kMiB) << "the device counts it";
    EXPECT_NE(scratch.reserve(stream(1), kMiB + 1), first);
    EXPECT_EQ(device.memory_use().device_bytes, 4 * kMiB) << "captured work may use the first one";
  }
  EXPECT_EQ(device.memory_use().device_bytes, 0U);
}

TEST(StreamScratch, TakesWhatIsNeededWhereThereIsNoRoomForMore) {
  test::LimitedDevice device(std::make_unique<CpuDevice>("cpu:0"), 0, 3 * kMiB - 1);
  StreamScratch scratch(device);
  scratch.reserve(stream(1), kMiB);
  void* const grown = scratch.reserve(stream(1), kMiB + kMiB / 2);
  EXPECT_EQ(device.memory_use().device_bytes, 2 * kMiB + kMiB / 2);
  EXPECT_THROW(scratch.reserve(stream(1), 2 * kMiB), DeviceError);
  for (int i = 0; i < 2; ++i) EXPECT_THROW(scratch.reserve(stream(2), kMiB), DeviceError) << "none of another's";
  EXPECT_EQ(scratch.reserve(stream(1), kMiB + kMiB / 2), grown) << "the piece of before is kept";
}

}  // namespace
}  // namespace headrace::cuda
