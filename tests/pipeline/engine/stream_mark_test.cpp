// The texts of marks, as states hold them.
#include "headrace/pipeline/engine/stream_mark.h"

#include "headrace/pipeline/loader.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

// The widest steps that a state has room for: of records that take any number of bytes, as those of TFRecord files
// do.
TEST(StreamMarkTest, HasRoomForTheStepsOfAWindow) {
  StreamMark mark{.at = {.epoch = 3, .record = 70'000}, .text = std::string(320, '1')};
  for (std::uint64_t i = 0; i < 1024; ++i) mark.steps.push_back(100'001 + i);
  LoaderState state{.fingerprint = 7, .sequence = 1'000'000'000, .records = 1'281'167};
  state.mark = mark.to_text(true);
  for (std::uint64_t i = 1; i <= 1024; ++i) state.ahead.push_back(state.sequence + i);
  EXPECT_LE(state.serialize().size(), 4096U);
  EXPECT_EQ(parse_stream_mark(LoaderState::parse(state.serialize()).mark)->steps, mark.steps);
}

TEST(StreamMarkTest, IsReadAsItWasWritten) {
  const StreamMark mark{.at = {.epoch = 1, .record = 0xAB}, .text = "8:0:1.200.2", .steps = {512, 0, 1536}};
  EXPECT_EQ(mark.to_text(false), "1/ab/8:0:1.200.2");
  EXPECT_EQ(mark.to_text(true), "1/ab/8:0:1.200.2;200:1:103");
  const std::optional<StreamMark> again = parse_stream_mark(mark.to_text(true));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->at, mark.at);
  EXPECT_EQ(again->text, mark.text);
  EXPECT_EQ(again->steps, mark.steps);
  StreamMark unplaced = mark;
  unplaced.steps.push_back(kUnplaced);
  EXPECT_EQ(unplaced.to_text(true), mark.to_text(false));
  for (const char* text : {"", "1", "1/", "1/2", "1/2/", "1/2/;200:1:1", "x/2/3", "1/2/3;", "1/2/3;200:1:?"})
    EXPECT_FALSE(parse_stream_mark(text)) << text;
}

}  // namespace
}  // namespace headrace::test
