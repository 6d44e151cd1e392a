#include "headrace/devices/cuda/math/dropout_work.h"

#include <gtest/gtest.h>

namespace headrace::cuda {
namespace {

// Any compiler that runs Philox at compile time runs it on a GPU.
static_assert(Philox::round10({0, 0, 0, 0}, {0, 0}) ==
              Philox::Block{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8});

TEST(DropoutWork, WordsAreThoseOfTheGenerator) {
  const std::uint64_t row = (std::uint64_t{7} << 32) + 9;
  Philox generator({.seed = 0xABCDEF0123456789ULL, .epoch = 0x34567890U, .record = row, .operation = 513});
  for (std::uint32_t block = 0; block < 5; ++block) {
    for (const std::uint32_t word : dropout_words(0xABCDEF0123456789ULL, 0x1234567890ULL, row, 513, block)) {
      EXPECT_EQ(word, generator.next_u32()) << block;
    }
  }
}

}  // namespace
}  // namespace headrace::cuda
