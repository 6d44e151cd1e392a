#include "headrace/tests/support/test.h"
#include "headrace/train/records/checkpoint_folder.h"

namespace headrace::test {
namespace {

const NameValues kNameValues{{"epoch", 3}, {"step", 1200}, {"val_loss", 0.123456}, {"val_accuracy", std::nullopt}};

std::string refused_name(const std::string& pattern) {
  return message_of([&] { checkpoint_name(pattern, kNameValues); });
}

TEST(CheckpointName, HasNumbersInTheirPlaces) {
  EXPECT_EQ(checkpoint_name("ckpt-{epoch}", kNameValues), "ckpt-3.safetensors");
  EXPECT_EQ(checkpoint_name("{epoch:02.0f}-{step}-{val_loss:.4f}", kNameValues), "03-1200-0.1235.safetensors");
  EXPECT_EQ(checkpoint_name("{val_accuracy:.3f}", kNameValues), "none.safetensors");
  EXPECT_EQ(checkpoint_name("last.safetensors", kNameValues), "last.safetensors");
}

TEST(CheckpointName, RefusesWhatNamesNothing) {
  EXPECT_THAT(refused_name("ckpt-{steps}"), HasSubstr("asks for {steps} (there are epoch, step, val_loss"));
  EXPECT_THAT(refused_name("ckpt-{step"), HasSubstr("without its partner"));
  EXPECT_THAT(refused_name("ckpt-step}"), HasSubstr("without its partner"));
  EXPECT_THAT(refused_name("{step:q}"), HasSubstr("has the format 'step:q'"));
  EXPECT_THAT(refused_name("a/{step}"), HasSubstr("is no name of a file"));
  EXPECT_THAT(refused_name(""), HasSubstr("is no name of a file"));
}

}  // namespace
}  // namespace headrace::test
