#include "headrace/train/model/value_types.h"
#include "headrace/tests/train/training_fixture.h"

namespace headrace::test {
namespace {

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
