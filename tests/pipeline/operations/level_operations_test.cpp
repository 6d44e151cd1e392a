// invert(), posterize(), solarize(), adjust_sharpness(), autocontrast() and equalize(): their kernels have tests
// of their own.
#include "headrace/pipeline/operations/kernels/level_kernels.h"
#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"
#include "headrace/tests/pipeline/operations/operation_fields.h"
#include "headrace/tests/pipeline/operations/operation_streams.h"

namespace headrace::test {
namespace {

struct LevelOperation {
  Operations chain;
  std::function<void(const LevelWork&)> kernel;
};

std::vector<LevelOperation> level_operations(float probability) {
  return {{invert(probability), invert_levels},
          {posterize(3, probability), [](const LevelWork& work) { posterize_levels(work, 3); }},
          {solarize(99.5F, probability), [](const LevelWork& work) { solarize_levels(work, 100); }},
          {adjust_sharpness(1.5F, probability), [](const LevelWork& work) { sharpen_levels(work, 1.5F); }},
          {autocontrast(probability), stretch_levels},
          {equalize(probability), equalize_levels}};
}

TEST(LevelOperations, ChangeAsManyImagesAsTheySay) {
  for (const LevelOperation& operation : level_operations(0.3F)) {
    int changed = 0;
    for (std::uint64_t record = 0; record < 60; ++record) {
      const Image image = random_image(6, 7, 3, record);
      const std::vector<std::uint8_t> levels(image.values.begin(), image.values.end());
      std::vector<std::uint8_t> expected = levels;
      if (draws(0, record).uniform() < 0.3F) {
        ++changed;
        operation.kernel({.from = levels.data(), .height = 6, .width = 7, .channels = 3, .to = expected.data()});
      }
      expect_near(run_chain(operation.chain, image, DType::kU8, record).values, {expected.begin(), expected.end()},
                  0);
    }
    EXPECT_GT(changed, 8);
    EXPECT_LT(changed, 30);
  }
}

TEST(LevelOperations, AreOneStreamForAnyThreadsReplicasPrefetchAndResumePoint) {
  Operations all = flip();
  for (const LevelOperation& operation : level_operations(0.5F)) all = all | operation.chain;
  expect_operation_streams(augmented_by(all | to_planes()));
}

TEST(LevelOperations, RefuseWhatCannotBe) {
  for (const LevelOperation& operation : level_operations(kNan)) {
    EXPECT_THAT(refusal_of_operations(operation.chain, rgb_field()), HasSubstr("probability"));
  }
  for (const LevelOperation& operation : level_operations(0.5F)) {
    EXPECT_THAT(refusal_of_operations(operation.chain, image_field({8, 8, 3}, DType::kF32)), HasSubstr("uint8"));
    EXPECT_EQ(refusal_of_operations(operation.chain, image_field({8, 8, 1})), "");
  }
}

TEST(LevelOperations, AreRandomUnlessTheyChangeAllImages) {
  for (const LevelOperation& operation : level_operations(0.5F)) {
    EXPECT_TRUE(is_random(operation.chain.list()[0])) << describe(operation.chain.list()[0]);
  }
  for (const LevelOperation& operation : level_operations(1)) {
    EXPECT_FALSE(is_random(operation.chain.list()[0])) << describe(operation.chain.list()[0]);
  }
}

}  // namespace
}  // namespace headrace::test
