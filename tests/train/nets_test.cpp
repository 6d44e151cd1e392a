#include "headrace/train/nets.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/graph.h"

namespace headrace::test {
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
  EXPECT_THAT(summarize(g), HasSubstr("Total parameters: 269322, trained: 269322, not trained: 0"));
}

TEST(Nets, TheNetsForImagesHaveAnyNumberOfClasses) {
  Graph imagenet;
  imagenet.finish(net_named("resnet18_imagenet")(imagenet));
  EXPECT_EQ(parameters(imagenet), 11'689'512) << "as torchvision's";
  EXPECT_EQ(imagenet.shape(imagenet.node("layer4.1.bn2")), (Shape{7, 7, 512}));
  Graph three({{.name = "image", .dtype = DType::kF32, .shape = {64, 64, 3}}});
  three.finish(net_named("resnet18_imagenet", 3)(three));
  EXPECT_EQ(three.shape(three.node("fc")), (Shape{3}));
  EXPECT_EQ(three.shape(three.node("layer1.0.conv1")), (Shape{16, 16, 64}));
  Graph small({{.name = "image", .dtype = DType::kF32, .shape = {96, 96, 3}}});
  small.finish(net_named("small_image_cnn", 3)(small));
  EXPECT_EQ(parameters(small) - 3 * 129, 296'736);
  EXPECT_THROW(net_named("resnet18", 3), ConfigError);
  EXPECT_THROW(net_named("small_image_cnn", -1), ConfigError);
  EXPECT_NO_THROW(net_named("resnet18", 10));
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

TEST(Nets, TheResNetHasTheDocumentedParametersAndShapes) {
  Graph g;
  const Node result = resnet18(g);
  EXPECT_EQ(g.shape(result), (Shape{10}));
  g.finish(result);
  EXPECT_EQ(parameters(g), 11'173'962);
  int convolutions = 0, additions = 0;
  for (const LayerInfo& layer : g.layers()) {
    convolutions += layer.kind == "conv" ? 1 : 0;
    additions += layer.kind == "add" ? 1 : 0;
    if (layer.kind == "global_average_pool") {
      EXPECT_EQ(layer.shape, (Shape{512}));
    }
  }
  EXPECT_EQ(g.layers()[1].shape, (Shape{32, 32, 64}));
  EXPECT_EQ(convolutions, 1 + 16 + 3);
  EXPECT_EQ(additions, 8);
}

// A narrow one, on small images of three colours.
TEST(Nets, TheResNetLearns) {
  Training training(2);
  Model model = compiled(
      training.strategy, [](Graph& g) { return resnet18(g, {.first = 4, .second = 4, .third = 8, .fourth = 8}); },
      sgd(0.05F, {.momentum = 0.9F, .nesterov = true}));
  const Dataset data = blobs(48, {32, 32, 3}, 4).batch({.global_batch = 16});
  const History history = model.fit(data, {.epochs = 4, .verbose = 0});
  EXPECT_LT(history["loss"].back(), 0.5 * history["loss"].front());
}

TEST(Nets, EveryNamedOneCanEndInTenClasses) {
  EXPECT_EQ(net_names().size(), 7U);
  for (const std::string& name : net_names()) {
    Graph g;
    const Node result = net_named(name, 10)(g).nodes.front();
    EXPECT_EQ(g.shape(result), (Shape{10})) << name;
    g.finish(result);
  }
  Graph g, same;
  g.finish(net_named("resnet18")(g));
  same.finish(resnet18(same));
  EXPECT_EQ(summarize(g), summarize(same));
}

TEST(Nets, AnUnknownNameIsRefusedWithThoseThereAre) {
  EXPECT_THAT(error_of<ConfigError>([&] { net_named("resnet20"); }).what(),
              AllOf(HasSubstr("'resnet20'"), HasSubstr("resnet18")));
}

TEST(Summary, HasALineALayer) {
  Graph g;
  g.finish(g.dense(g.batch_norm(g.input("image", {4})), 3, {.name = "head"}));
  const std::string text = summarize(g);
  EXPECT_THAT(text, ContainsRegex("head +dense +\\(3,\\) +15"));
  EXPECT_THAT(text, HasSubstr("Total parameters: 31, trained: 23, not trained: 8"));
}

}  // namespace
}  // namespace headrace::test
