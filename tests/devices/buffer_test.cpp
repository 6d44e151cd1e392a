#include "headrace/devices/buffer.h"
#include "headrace/devices/base/bf16.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

struct CountingOwner : BufferOwner {
  int released = 0;
  std::size_t last_bytes = 0;
  MemoryPlace last_place = MemoryPlace::kDevice;

  void release(void*, std::size_t bytes, MemoryPlace place) noexcept override {
    ++released;
    last_bytes = bytes;
    last_place = place;
  }
};

struct BufferTest : ::testing::Test {
  CountingOwner owner;
  std::array<std::byte, 64> memory{};

  Buffer make(std::size_t bytes) { return {owner, memory.data(), bytes, MemoryPlace::kPinned}; }
};

TEST_F(BufferTest, IsReleasedOnceToItsOwner) {
  { const Buffer buffer = make(64); }
  EXPECT_EQ(owner.released, 1);
  EXPECT_EQ(owner.last_bytes, 64U);
  EXPECT_EQ(owner.last_place, MemoryPlace::kPinned);
}

TEST_F(BufferTest, MovingLeavesAnEmptyBuffer) {
  Buffer from = make(64);
  const Buffer to = std::move(from);
  EXPECT_FALSE(from);  // NOLINT(bugprone-use-after-move): that is what is tested
  EXPECT_EQ(from.size(), 0U);
  EXPECT_TRUE(to);
  EXPECT_EQ(owner.released, 0);
}

TEST_F(BufferTest, AssigningReleasesWhatWasThere) {
  Buffer buffer = make(10);
  buffer = make(20);
  EXPECT_EQ(owner.released, 1);
  EXPECT_EQ(owner.last_bytes, 10U);
  buffer = Buffer();
  EXPECT_EQ(owner.released, 2);
  EXPECT_EQ(owner.last_bytes, 20U);
}

TEST_F(BufferTest, ViewsBeginAtTheirOffset) {
  const Buffer buffer = make(64);
  const TensorView view = buffer.view({2, 3}, DType::kF32, 16);
  EXPECT_EQ(view.data, memory.data() + 16);
  EXPECT_EQ(view.bytes(), 24U);
  EXPECT_TRUE(view.defined());
  EXPECT_FALSE(TensorView().defined());
}

TEST_F(BufferTest, ViewsGiveElementsOfTheirTypeAlone) {
  const Buffer buffer = make(64);
  const TensorView floats = buffer.view({2, 3}, DType::kF32), halves = buffer.view({2, 3}, DType::kBF16);
  EXPECT_EQ(floats.as<const float>(), static_cast<const void*>(memory.data()));
  EXPECT_EQ(halves.as<BFloat16>(), static_cast<const void*>(memory.data()));
  EXPECT_EQ(halves.as<std::byte>(), memory.data());
  EXPECT_EQ(TensorView().as<std::int64_t>(), nullptr) << "an undefined view has no elements of any type";
  EXPECT_THROW(floats.as<BFloat16>(), ConfigError);
  EXPECT_THROW(halves.as<const float>(), ConfigError);
  EXPECT_THROW(buffer.view({4}, DType::kI32).as<std::int64_t>(), ConfigError);
  EXPECT_THROW(buffer.view({4}, DType::kF16).as<std::uint8_t>(), ConfigError);
}

}  // namespace
}  // namespace headrace::test
