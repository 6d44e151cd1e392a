#include "headrace/devices/cuda/math/convolution_problem.h"

#include <gmock/gmock.h>

namespace headrace::cuda {
namespace {

ConvolutionProblem problem(ConvolutionPass pass, Precision precision, bool bias = false) {
  const ConvOptions options{.stride = 2, .pad_bottom = 1, .pad_right = 1, .precision = precision};
  ConvolutionProblem made = convolution_problem(pass, {8, 6, 6, 3}, {4, 3, 3, 3}, {8, 3, 3, 4}, options);
  made.bias = bias;
  return made;
}

using Types = std::vector<std::pair<DType, DType>>;  // of operands and result

Types types(const std::vector<ConvolutionProblem>& ways) {
  Types result;
  for (const ConvolutionProblem& way : ways) result.emplace_back(way.operands, way.result);
  return result;
}

constexpr auto kF32 = DType::kF32;
constexpr auto kBF16 = DType::kBF16;

TEST(ConvolutionProblem, IsMadeFromACall) {
  const ConvolutionProblem made = problem(ConvolutionPass::kForward, Precision::kF32);
  EXPECT_THAT(made.x, ::testing::ElementsAre(8, 6, 6, 3));
  EXPECT_THAT(made.pad_before, ::testing::ElementsAre(0, 0));
  EXPECT_THAT(made.pad_after, ::testing::ElementsAre(1, 1));
  EXPECT_EQ(to_string(made), "forward (8, 6, 6, 3) * (4, 3, 3, 3) -> (8, 3, 3, 4), stride 2, float32 to float32");
}

TEST(ConvolutionProblem, ItsFullTextTellsPaddingsApart) {
  ConvolutionProblem made = problem(ConvolutionPass::kForward, Precision::kF32);
  EXPECT_EQ(full_text(made), to_string(made) + ", padding 0,0 1,1");
  made.pad_before = {1, 1};
  made.pad_after = {0, 0};
  EXPECT_EQ(full_text(made), to_string(made) + ", padding 1,1 0,0");
}

TEST(ConvolutionProblem, ADilationIsPartOfIt) {
  const ConvolutionProblem near = problem(ConvolutionPass::kForward, Precision::kF32);
  const ConvOptions options{.stride = 2, .dilation = 3, .pad_bottom = 1, .pad_right = 1};
  const ConvolutionProblem far =
      convolution_problem(ConvolutionPass::kForward, {8, 6, 6, 3}, {4, 3, 3, 3}, {8, 1, 1, 4}, options);
  EXPECT_THAT(far.dilation, ::testing::ElementsAre(3, 3));
  EXPECT_EQ(
      full_text(far),
      "forward (8, 6, 6, 3) * (4, 3, 3, 3) -> (8, 1, 1, 4), stride 2, dilation 3, float32 to float32, padding "
      "0,0 1,1");
  ConvolutionProblem same = near;
  same.dilation = {3, 3};
  EXPECT_NE(same, near) << "another plan";
  EXPECT_NE(full_text(same), full_text(near));
}

// Problems of square windows keep their text, by which plans are kept.
TEST(ConvolutionProblem, PairsAreHeightAndWidth) {
  const ConvOptions options{.stride = {2, 1}, .dilation = {1, 3}, .pad_left = 3, .pad_right = 3, .groups = 3};
  EXPECT_EQ(
      full_text(convolution_problem(ConvolutionPass::kForward, {8, 6, 6, 6}, {9, 1, 3, 2}, {8, 3, 6, 9}, options)),
      "forward (8, 6, 6, 6) * (9, 1, 3, 2) -> (8, 3, 6, 9), stride 2,1, dilation 1,3, float32 to float32, "
      "padding 0,3 0,3");
}

TEST(ConvolutionProblem, F32IsNeverComputedOtherwise) {
  for (const auto pass :
       {ConvolutionPass::kForward, ConvolutionPass::kBackwardData, ConvolutionPass::kBackwardWeights}) {
    for (const DType wanted : {kF32, kBF16}) {
      const auto ways = ways_to_compute(problem(pass, Precision::kF32), wanted, ActivationStorage::kF32);
      EXPECT_EQ(types(ways), (Types{{kF32, kF32}}));
    }
  }
}

TEST(ConvolutionProblem, Bf16PrefersBf16Operands) {
  const auto forward = problem(ConvolutionPass::kForward, Precision::kBF16);
  EXPECT_EQ(types(ways_to_compute(forward, kBF16, ActivationStorage::kBF16)),
            (Types{{kBF16, kBF16}, {kF32, kF32}}));
  EXPECT_EQ(types(ways_to_compute(forward, kF32, ActivationStorage::kF32)), (Types{{kBF16, kF32}, {kF32, kF32}}));
  const auto backward = problem(ConvolutionPass::kBackwardWeights, Precision::kBF16);
  EXPECT_EQ(types(ways_to_compute(backward, kF32, ActivationStorage::kBF16)),
            (Types{{kBF16, kBF16}, {kF32, kF32}}));
  EXPECT_EQ(types(ways_to_compute(backward, kF32, ActivationStorage::kF32)), (Types{{kF32, kF32}}))
      << "an f32 gradient of f32 activations is not rounded";
}

TEST(ConvolutionProblem, ABiasMayBecomeAKernelOfItsOwn) {
  const auto ways =
      ways_to_compute(problem(ConvolutionPass::kForward, Precision::kF32, true), kF32, ActivationStorage::kF32);
  ASSERT_EQ(ways.size(), 2U);
  EXPECT_TRUE(ways[0].bias);
  EXPECT_FALSE(ways[1].bias);
}

}  // namespace
}  // namespace headrace::cuda
