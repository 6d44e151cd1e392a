#include "headrace/pipeline/loader.h"

#include <gtest/gtest.h>

#include <vector>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

TEST(LoaderState, SurvivesBeingWritten) {
  const LoaderState state{.fingerprint = 0x0123456789ABCDEF, .sequence = 98765};
  EXPECT_EQ(state.serialize(), "headrace-loader-1 0123456789abcdef 98765");
  EXPECT_EQ(LoaderState::parse(state.serialize()), state);
  EXPECT_EQ(LoaderState::parse(state.serialize() + "\n"), state);
}

TEST(LoaderState, SurvivesBeingWrittenWithBatchesAhead) {
  const LoaderState state{.fingerprint = 0x0123456789ABCDEF, .sequence = 7, .ahead = {8, 10, 13, 16}};
  EXPECT_EQ(state.serialize(), "headrace-loader-1 0123456789abcdef 7 521");
  EXPECT_EQ(LoaderState::parse(state.serialize()), state);
  LoaderState full{.fingerprint = 1, .sequence = 0xFFFFFFFFFFFF};
  for (std::uint64_t i = 1; i <= 1024; ++i) full.ahead.push_back(full.sequence + i);
  EXPECT_LE(full.serialize().size(), 4096U);
  EXPECT_EQ(LoaderState::parse(full.serialize()), full);
}

TEST(LoaderState, RefusesBatchesAheadThatCannotBe) {
  for (const std::vector<std::uint64_t>& ahead :
       std::vector<std::vector<std::uint64_t>>{{7}, {6}, {9, 8}, {8, 8}, {7 + 1025}}) {
    const LoaderState state{.fingerprint = 1, .sequence = 7, .ahead = ahead};
    EXPECT_THROW(state.serialize(), ConfigError) << ahead.front();
  }
}

TEST(LoaderState, RefusesAnythingElse) {
  for (const char* text :
       {"", "headrace-loader-2 0123456789abcdef 1", "headrace-loader-1 0123456789abcdef",
        "headrace-loader-1 0123456789abcdeg 1", "headrace-loader-1 0123456789abcdef 1x",
        "headrace-loader-1 0123456789abcdef -1", "headrace-loader-1 0123456789abcdef ", "headrace-loader-1 123 4",
        "headrace-loader-1 0123456789abcdef 99999999999999999999999", "headrace-loader-1 0123456789abcdef 1 ",
        "headrace-loader-1 0123456789abcdef 1 0", "headrace-loader-1 0123456789abcdef 1 10",
        "headrace-loader-1 0123456789abcdef 1 A", "headrace-loader-1 0123456789abcdef 1 1 1",
        "headrace-loader-1 0123456789abcdef 18446744073709551615 1"}) {
    EXPECT_THROW(LoaderState::parse(text), ConfigError) << text;
  }
}

}  // namespace
}  // namespace headrace
