#include "headrace/train/nets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/devices/base/error.h"
#include "headrace/train/summary.h"

namespace headrace {
namespace {

std::int64_t parameters(const Graph& graph) {
  std::int64_t count = 0;
  for (const LayerInfo& layer : graph.layers()) count += layer.parameters;
  return count;
}

TEST(Nets, TheMlpHasTheDocumentedParameters) {
  Graph g;
  g.finish(mnist_mlp(g));
  EXPECT_EQ(parameters(g), 269'322);
  EXPECT_THAT(summarize(g), testing::HasSubstr("Total parameters: 269322, trained: 269322, not trained: 0"));
}

TEST(Nets, TheMlpTakesFlatImages) {
  Graph g({{.name = "image", .dtype = DType::kF32, .shape = {784}}});
  g.finish(mnist_mlp(g));
  EXPECT_EQ(parameters(g), 269'322);
}

TEST(Nets, TheSpeedNetHasTheDocumentedParameters) {
  Graph g;
  g.finish(cifar10_speed_net(g));
  // Convolutions, head, biases of the norms, bias of the whitening.
  EXPECT_EQ(parameters(g), 9 * (24 * 64 + 64 * 64 + 64 * 256 + 3 * 256 * 256) + 2560 + 2 * (64 + 256 + 256) + 24);
  EXPECT_EQ(g.layers()[1].name, "whiten");
  EXPECT_EQ(g.layers()[1].shape, (Shape{31, 31, 24}));
}

TEST(Nets, EveryNamedNetEndsInTenClasses) {
  for (const std::string& name : net_names()) {
    Graph g;
    const Node result = named_net(name)(g);
    EXPECT_EQ(g.shape(result), (Shape{10})) << name;
    g.finish(result);
  }
}

TEST(Nets, AnUnknownNameListsTheNets) {
  try {
    named_net("resnet-1000");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("resnet-1000"), testing::HasSubstr("mnist-mlp")));
  }
}

TEST(Summary, HasALineALayer) {
  Graph g;
  g.finish(g.dense(g.batch_norm(g.input("image", {4})), 3, {.name = "head"}));
  const std::string text = summarize(g);
  EXPECT_THAT(text, testing::ContainsRegex("head +dense +\\(3,\\) +15"));
  EXPECT_THAT(text, testing::HasSubstr("Total parameters: 31, trained: 23, not trained: 8"));
}

}  // namespace
}  // namespace headrace
