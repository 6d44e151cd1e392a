#include "headrace/pipeline/loader.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

TEST(LoaderState, SurvivesBeingWritten) {
  const LoaderState state{.fingerprint = 0x0123456789ABCDEF, .sequence = 98765};
  EXPECT_EQ(state.serialize(), "headrace-loader-2 0123456789abcdef 98765 0 -");
  EXPECT_EQ(LoaderState::parse(state.serialize()), state);
  EXPECT_EQ(LoaderState::parse(state.serialize() + "\n"), state);
}

TEST(LoaderState, SurvivesBeingWrittenWithStagesAndBatchesAhead) {
  const LoaderState state{.fingerprint = 0x0123456789ABCDEF,
                          .sequence = 7,
                          .ahead = {8, 10, 13, 16},
                          .seed = 42,
                          .stages = {0x1A2B, 0xFFFFFFFF}};
  EXPECT_EQ(state.serialize(), "headrace-loader-2 0123456789abcdef 7 42 00001a2bffffffff 521");
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
       {"", "headrace-loader-1 0123456789abcdef 1", "headrace-loader-2 0123456789abcdef 1",
        "headrace-loader-2 0123456789abcdef 1 0", "headrace-loader-2 0123456789abcdeg 1 0 -",
        "headrace-loader-2 0123456789abcdef 1x 0 -", "headrace-loader-2 0123456789abcdef -1 0 -",
        "headrace-loader-2 0123456789abcdef 1 -1 -", "headrace-loader-2 0123456789abcdef 1 0 ",
        "headrace-loader-2 123 4 0 -", "headrace-loader-2 0123456789abcdef 99999999999999999999999 0 -",
        "headrace-loader-2 0123456789abcdef 1 0 0123456", "headrace-loader-2 0123456789abcdef 1 0 0123456g",
        "headrace-loader-2 0123456789abcdef 1 0 - ", "headrace-loader-2 0123456789abcdef 1 0 - 0",
        "headrace-loader-2 0123456789abcdef 1 0 - 10", "headrace-loader-2 0123456789abcdef 1 0 - A",
        "headrace-loader-2 0123456789abcdef 1 0 - 1 1",
        "headrace-loader-2 0123456789abcdef 18446744073709551615 0 - 1"}) {
    EXPECT_THROW(LoaderState::parse(text), ConfigError) << text;
  }
}

}  // namespace
}  // namespace headrace::test
