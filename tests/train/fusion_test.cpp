// The nets of the library, and layers that run as one.
#include "headrace/tests/support/twin_kernels.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/graph.h"
#include "headrace/train/nets.h"
#include "headrace/train/step/program.h"

namespace headrace::test {
namespace {

// Layers that one call does together train as they do one by one.

enum class Between { kNothing, kDropout };

// Nothing is fused over a dropout, and one that drops nothing changes nothing.
Node gap(Graph& g, Node x, Between between) { return between == Between::kDropout ? g.dropout(x, 0.0F) : x; }

Node norm(Graph& g, Node x, Activation activation, Between between) {
  x = gap(g, g.batch_norm(gap(g, x, between), {.momentum = 0.6F}), between);
  return g.activation(x, activation);
}

// Pooling, normalisation and activation in a row, and the last two alone.
Node chain(Graph& g, Between between) {
  Node x = g.conv(g.input("image", {6, 6, 3}), 8, {.bias = false});
  x = norm(g, g.max_pool(x, 2), Activation::kGelu, between);
  x = norm(g, g.conv(x, 5), Activation::kRelu, between);
  return g.dense(g.flatten(x), 4);
}

// What is pooled has a second reader, between the pooling and its normalisation; the activation has two.
Node branches(Graph& g, Between between) {
  const Node x = g.conv(g.input("image", {6, 6, 3}), 8, {.activation = Activation::kRelu});
  const Node pooled = g.max_pool(x, 2);
  const Node beside = g.conv(x, 8, {.kernel = 2, .stride = 2});
  const Node y = norm(g, pooled, Activation::kSilu, between);
  return g.dense(g.flatten(g.add(g.add(y, beside), g.conv(y, 8))), 4);
}

// Nothing before the normalisation learns: its input's gradient is nobody's.
Node first(Graph& g, Between between) {
  const Node x = norm(g, g.max_pool(g.input("image", {6, 6, 3}), 2), Activation::kGelu, between);
  return g.dense(g.flatten(x), 4);
}

// The normalisation's result, its input and its pooling have other readers: none of it may be fused away.
Node readers(Graph& g, Between between) {
  const Node pooled = g.max_pool(g.conv(g.input("image", {6, 6, 3}), 8), 2);
  const Node normalized = gap(g, g.batch_norm(pooled, {.momentum = 0.6F}), between);
  return g.dense(g.flatten(g.add(g.add(g.gelu(normalized), normalized), pooled)), 4);
}

// Only the convolution's bias learns: where the device gains by it, it goes back through the activation.
Node patches(Graph& g, Between between) {
  const Node x = g.conv(g.input("image", {6, 6, 3}), 24,
                        {.kernel = 2, .padding = ConvPadding::kValid, .trained_weights = false});
  return g.dense(g.flatten(g.max_pool(g.gelu(gap(g, x, between)), 2)), 4);
}

using Build = Node (*)(Graph&, Between);

struct FusedTrained {
  std::vector<std::vector<float>> variables;
  double evaluated = 0;
};

FusedTrained train_fused(Strategy& strategy, Build build, Between between, const FusedTrained* initial) {
  Model model = strategy.build([=](Graph& g) { return build(g, between); }, {.seed = 3});
  model.compile({.optimizer = sgd(0.05F, {.momentum = 0.9F})});
  FusedTrained trained;
  if (initial != nullptr) {
    std::size_t next = 0;
    for (const std::string& name : model.variable_names()) model.write_variable(name, initial->variables[next++]);
    const Dataset data = blobs(37, {6, 6, 3}).batch({.global_batch = 16});
    model.fit(data, {.epochs = 2, .verbose = 0});
    trained.evaluated = model.evaluate(data).loss;
  }
  trained.variables = variables_of(model);
  return trained;
}

struct FusedCase {
  const char* name;
  Build build;
};

class FusionTest : public testing::TestWithParam<FusedCase> {};

// 37 examples in batches of 16: the last is smaller, and of three replicas one then has nothing to learn from.
TEST_P(FusionTest, ChangesNoBit) {
  for (const int replicas : {1, 2, 3}) {
    Training training(replicas);
    const FusedTrained initial = train_fused(training.strategy, GetParam().build, Between::kNothing, nullptr);
    const FusedTrained fused = train_fused(training.strategy, GetParam().build, Between::kNothing, &initial);
    const FusedTrained apart = train_fused(training.strategy, GetParam().build, Between::kDropout, &initial);
    EXPECT_EQ(fused.variables, apart.variables) << replicas << " replicas";
    EXPECT_EQ(fused.evaluated, apart.evaluated) << replicas << " replicas";
    EXPECT_NE(fused.variables, initial.variables);
  }
}

// The GPU's kernels on the host: other orders of sums within a call, the same roundings.
TEST_P(FusionTest, ChangesNoBitOfAGpusKernelsInF32) {
  DeviceGroup devices = twin_devices(2);
  Strategy strategy(devices, {.announce = false});
  const FusedTrained initial = train_fused(strategy, GetParam().build, Between::kNothing, nullptr);
  const FusedTrained fused = train_fused(strategy, GetParam().build, Between::kNothing, &initial);
  const FusedTrained apart = train_fused(strategy, GetParam().build, Between::kDropout, &initial);
  EXPECT_EQ(fused.variables, apart.variables);
  EXPECT_EQ(fused.evaluated, apart.evaluated);
}

INSTANTIATE_TEST_SUITE_P(Nets, FusionTest,
                         testing::Values(FusedCase{"chain", chain}, FusedCase{"branches", branches},
                                         FusedCase{"first", first}, FusedCase{"readers", readers},
                                         FusedCase{"patches", patches}),
                         [](const auto& each) { return std::string(each.param.name); });

// What the activation is applied to is kept nowhere: a layer keeps its input and its result.
TEST(Fusion, KeepsNoArgumentsOfActivations) {
  constexpr int kLayers = 6;
  constexpr std::int64_t kRows = 128, kWidth = 64;
  Graph graph;
  Node x = graph.input("image", {kWidth});
  for (int i = 0; i < kLayers; ++i) x = graph.gelu(graph.batch_norm(graph.dense(x, kWidth)));
  graph.finish(graph.dense(x, 4));
  const VariableLayout layout(graph);
  const Program program(graph, layout, {.rows = kRows});
  const std::size_t value = kRows * kWidth * sizeof(float);
  // Each layer's two, the net's input, two gradients.
  EXPECT_LT(program.workspace_bytes(), (2 * kLayers + 4) * value);
}

// Nor does a convolution where the device computes them again, which needs that its weights do not learn.
TEST(Fusion, KeepsNoArgumentsThatAreComputedAgain) {
  constexpr std::int64_t kRows = 64;
  const DeviceGroup devices = twin_devices(1);
  const Kernels& kernels = *devices[0].kernels();
  const auto bytes = [&](bool trained_weights, const std::vector<const Kernels*>& of) {
    Graph graph;
    const Node x = graph.conv(graph.input("image", {6, 6, 3}), 24,
                              {.kernel = 2,
                               .padding = ConvPadding::kValid,
                               .activation = Activation::kGelu,
                               .trained_weights = trained_weights});
    graph.finish(graph.dense(graph.flatten(graph.max_pool(x, 2)), 4));
    return Program(graph, VariableLayout(graph), {.rows = kRows}, of).workspace_bytes();
  };
  const std::size_t value = kRows * 5 * 5 * 24 * sizeof(float);
  EXPECT_EQ(bytes(false, {&kernels, &kernels}) + value, bytes(false, {}));
  EXPECT_EQ(bytes(true, {&kernels}), bytes(true, {}));
  const DeviceGroup cpu = open_devices("cpu:1");
  EXPECT_EQ(bytes(false, {&kernels, cpu[0].kernels()}), bytes(false, {})) << "one program serves both";
}

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
