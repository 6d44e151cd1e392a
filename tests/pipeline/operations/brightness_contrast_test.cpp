#include "headrace/pipeline/operations/brightness_contrast.h"
#include "headrace/pipeline/operations/machinery/definition.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace::test {
namespace {

TEST(BrightnessContrast, ShiftsThenScalesAllNumbersByWhatIsDrawnForTheRecord) {
  const BrightnessContrast options{.brightness = 0.5F, .contrast = 0.25F};
  StepList steps;
  EXPECT_TRUE(Operation{options}.definition().compile(steps, {.number = 3, .before = {}}));
  const Step& step = *steps.last<Step>();
  std::vector<float> image(3 * 32 * 31 + 5);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i % 97) - 40.5F;
  for (const std::uint64_t record : {0U, 7U, 8U}) {
    const StepContext context{.seed = 5, .pass = 2, .record = record};
    Philox random = context.random(3);
    const PixelTone tone = draw_tone(options, random);
    Scratch scratch;
    StepOutput output(scratch, scratch.results[0]);
    const FieldView result =
        step.run({.bytes = std::as_bytes(std::span(image)), .shape = {static_cast<std::int64_t>(image.size())}},
                 context, output);
    ASSERT_EQ(result.bytes.size(), image.size() * sizeof(float));
    for (std::size_t i = 0; i < image.size(); ++i) {
      float value = 0;
      std::memcpy(&value, result.bytes.data() + i * sizeof(float), sizeof value);
      const volatile float sum = image[i] + tone.shift;  // rounded by itself
      ASSERT_EQ(value, sum * tone.gain) << record << ", " << i;
    }
  }
}

TEST(BrightnessContrast, DrawsAllOfItsRangesAndNothingElse) {
  float least = 1, most = -1, weakest = 2, strongest = 0;
  double shifts = 0, gains = 0;
  constexpr int kDraws = 4000;
  for (std::uint64_t record = 0; record < kDraws; ++record) {
    Philox random({.seed = 1, .record = record});
    const PixelTone tone = draw_tone({.brightness = 0.14F, .contrast = 0.13F}, random);
    least = std::min(least, tone.shift);
    most = std::max(most, tone.shift);
    weakest = std::min(weakest, tone.gain);
    strongest = std::max(strongest, tone.gain);
    shifts += static_cast<double>(tone.shift);
    gains += static_cast<double>(tone.gain);
  }
  EXPECT_GE(least, -0.14F);
  EXPECT_LT(least, -0.138F);
  EXPECT_LE(most, 0.14F);
  EXPECT_GT(most, 0.138F);
  EXPECT_GE(weakest, 0.87F);
  EXPECT_LT(weakest, 0.872F);
  EXPECT_LE(strongest, 1.13F);
  EXPECT_GT(strongest, 1.128F);
  EXPECT_NEAR(shifts / kDraws, 0, 0.006);
  EXPECT_NEAR(gains / kDraws, 1, 0.006);
}

TEST(BrightnessContrast, ChangesNothingWhereNothingIsAsked) {
  Philox random({.seed = 1});
  const PixelTone tone = draw_tone({}, random);
  EXPECT_EQ(tone.shift, 0);
  EXPECT_EQ(tone.gain, 1);
}

}  // namespace
}  // namespace headrace::test
