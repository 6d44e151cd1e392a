// Where variables lie, and of which types.
#include "headrace/train/model/variable_layout.h"
#include "headrace/tests/support/test.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/model/value_types.h"

namespace headrace::test {
namespace {

VariableSpec spec(Fill fill, const Shape& shape, std::int64_t fan_in = 9) {
  return {.name = "weights", .shape = shape, .fill = fill, .fan_in = fan_in, .fan_out = 16};
}

void expect_uniform(const std::vector<float>& values, double limit) {
  double sum = 0, squares = 0, largest = 0;
  for (const float value : values) {
    sum += value;
    squares += static_cast<double>(value) * static_cast<double>(value);
    largest = std::max(largest, std::abs(static_cast<double>(value)));
  }
  const auto count = static_cast<double>(values.size());
  EXPECT_LE(largest, limit * (1 + 1e-6));
  EXPECT_GT(largest, limit * 0.99);
  EXPECT_NEAR(sum / count, 0, 4 * limit / std::sqrt(3 * count));
  EXPECT_NEAR(squares / count, limit * limit / 3, 0.05 * limit * limit);
}

TEST(InitialValues, KeepTheirLimits) {
  const Shape shape{40, 50};
  expect_uniform(initial_values(spec(Fill::kGlorotUniform, shape), 1, 2), std::sqrt(6.0 / 25));
  expect_uniform(initial_values(spec(Fill::kHeUniform, shape), 1, 2), std::sqrt(6.0 / 9));
  expect_uniform(initial_values(spec(Fill::kFanInUniform, shape), 1, 2), 1.0 / 3);
  EXPECT_EQ(initial_values(spec(Fill::kZeros, {3}), 1, 2), (std::vector<float>{0, 0, 0}));
  VariableSpec constant = spec(Fill::kConstant, {2});
  EXPECT_EQ(initial_values(constant, 1, 2), (std::vector<float>{1, 1}));
  constant.constant = 0.25F;
  EXPECT_EQ(initial_values(constant, 1, 2), (std::vector<float>{0.25F, 0.25F}));
}

TEST(InitialValues, DependOnSeedAndVariable) {
  const VariableSpec each = spec(Fill::kFanInUniform, {5});
  EXPECT_EQ(initial_values(each, 1, 2), initial_values(each, 1, 2));
  EXPECT_NE(initial_values(each, 1, 2), initial_values(each, 2, 2));
  EXPECT_NE(initial_values(each, 1, 2), initial_values(each, 1, 3));
}

TEST(InitialValues, DiracFiltersPassChannelsOn) {
  constexpr std::size_t kFilters = 5, kKernel = 9, kChannels = 3;
  const VariableSpec each = spec(Fill::kDirac, {5, 3, 3, 3}, 27);
  const std::vector<float> values = initial_values(each, 1, 2);
  const std::vector<float> drawn = initial_values(spec(Fill::kFanInUniform, {5, 3, 3, 3}, 27), 1, 2);
  for (std::size_t f = 0; f < kFilters; ++f) {
    for (std::size_t k = 0; k < kKernel; ++k) {
      for (std::size_t c = 0; c < kChannels; ++c) {
        const std::size_t at = (f * kKernel + k) * kChannels + c;
        EXPECT_EQ(values[at], f >= kChannels ? drawn[at] : k == 4 && c == f ? 1.0F : 0.0F) << at;
      }
    }
  }
  // Fewer filters than channels: each passes one on.
  const std::vector<float> few = initial_values(spec(Fill::kDirac, {2, 1, 1, 4}, 4), 1, 2);
  EXPECT_EQ(few, (std::vector<float>{1, 0, 0, 0, 0, 1, 0, 0}));
}

TEST(InitialValues, UnitDeviationIsExact) {
  const std::vector<float> values = initial_values(spec(Fill::kUnitDeviation, {10, 256}, 256), 1, 2);
  double sum = 0, squares = 0;
  for (const float value : values) sum += value;
  const double mean = sum / 2560;
  for (const float value : values) squares += (value - mean) * (value - mean);
  EXPECT_NEAR(std::sqrt(squares / 2559), 1, 1e-6);
}

constexpr DType kHalf = DType::kBF16, kWide = DType::kF32;

std::vector<DType> types_of(const Net& net, Mode mode = Mode::kTrain) {
  Graph graph;
  graph.finish(net(graph));
  return value_types(graph, mode, results_of(graph, {}), kHalf);
}

TEST(ValueTypes, FromTheLastDenseLayerOnAllIsF32) {
  EXPECT_EQ(types_of(small_mlp), (std::vector<DType>{kHalf, kHalf, kHalf, kWide}));
  const auto with_softmax = [](Graph& g) {
    return g.softmax(g.relu(g.dense(g.flatten(g.input("x", {2, 2})), 3)));
  };
  EXPECT_EQ(types_of(with_softmax, Mode::kPredict), (std::vector<DType>{kHalf, kHalf, kWide, kWide, kWide}));
}

TEST(ValueTypes, ANetWithoutADenseLayerIsF32) {
  const auto net = [](Graph& g) {
    return g.global_average_pool(g.batch_norm(g.conv(g.input("x", {4, 4, 1}), 3)));
  };
  EXPECT_EQ(types_of(net), std::vector<DType>(4, kWide));
}

TEST(ValueTypes, WhatMeetsTheLogitsInASumIsF32) {
  const auto net = [](Graph& g) {
    const Node x = g.gelu(g.dense(g.input("x", {4}), 3));  // 1, 2
    const Node twice = g.dense(x, 3);                      // 3
    return g.add(twice, g.dropout(x, 0.5F));               // 5 and 4: x is in the sum, so it is f32, and its gelu
  };
  EXPECT_EQ(types_of(net), (std::vector<DType>{kHalf, kWide, kWide, kWide, kWide, kWide}));
}

TEST(ValueTypes, F32StaysF32) {
  Graph graph;
  graph.finish(small_mlp(graph));
  EXPECT_EQ(value_types(graph, Mode::kTrain, results_of(graph, {}), kWide), std::vector<DType>(4, kWide));
}

}  // namespace
}  // namespace headrace::test
