#include "headrace/train/graph.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

TEST(Graph, InfersShapes) {
  Graph g;
  Node x = g.input("image", {33, 32, 3});
  x = g.conv(x, 8, {.kernel = 3});
  EXPECT_EQ(g.shape(x), (Shape{33, 32, 8}));
  x = g.conv(x, 8, {.kernel = 3, .stride = 2});
  EXPECT_EQ(g.shape(x), (Shape{17, 16, 8}));
  x = g.conv(x, 16, {.kernel = 2, .padding = ConvPadding::kValid});
  EXPECT_EQ(g.shape(x), (Shape{16, 15, 16}));
  x = g.max_pool(x, 2);
  EXPECT_EQ(g.shape(x), (Shape{8, 7, 16}));
  x = g.max_pool(x, 3, {.stride = 2});
  EXPECT_EQ(g.shape(x), (Shape{3, 3, 16}));
  EXPECT_EQ(g.shape(g.global_average_pool(x)), (Shape{16}));
  EXPECT_EQ(g.shape(g.flatten(x)), (Shape{144}));
  EXPECT_EQ(g.shape(g.dense(x, 5)), (Shape{3, 3, 5})) << "dense acts on the last axis";
}

TEST(Graph, TakesInputShapesFromTheData) {
  Graph g({{.name = "image", .dtype = DType::kU8, .shape = {28, 28, 1}}});
  EXPECT_EQ(g.shape(g.input("image")), (Shape{28, 28, 1}));
  EXPECT_THAT(message_of([&] { g.input("picture"); }), AllOf(HasSubstr("picture"), HasSubstr("image")));
  Graph unknown;
  EXPECT_THAT(message_of([&] { unknown.input("image"); }), HasSubstr("fields"));
}

TEST(Graph, AnInputIsOneNodeHoweverOftenItIsNamed) {
  Graph g;
  EXPECT_EQ(g.input("image", {4}).id, g.input("image", {4}).id);
  EXPECT_THAT(message_of([&] { g.input("image", {5}); }), AllOf(HasSubstr("(4,)"), HasSubstr("(5,)")));
}

TEST(Graph, NamesLayersAndTheirActivations) {
  Graph g;
  Node x = g.dense(g.input("image", {4}), 3, {.activation = Activation::kRelu});
  x = g.dense(x, 3, {.activation = Activation::kGelu, .name = "head"});
  x = g.dense(x, 3);
  g.finish(x);
  std::vector<std::string> names;
  for (const LayerInfo& layer : g.layers()) names.push_back(layer.name);
  EXPECT_THAT(names, ElementsAre("image", "dense", "dense/relu", "head", "head/gelu", "dense_1"));
}

TEST(Graph, CountsParametersAndState) {
  Graph g;
  Node x = g.batch_norm(g.conv(g.input("image", {6, 6, 2}), 4, {.kernel = 3, .bias = false}));
  g.finish(g.dense(g.flatten(x), 3));
  const std::vector<LayerInfo> layers = g.layers();
  EXPECT_EQ(layers[1].parameters, 4 * 3 * 3 * 2);
  EXPECT_EQ(layers[2].parameters, 8);
  EXPECT_EQ(layers[2].state, 8);
  EXPECT_EQ(layers[4].parameters, 144 * 3 + 3);
}

TEST(Graph, ErrorsNameTheLayerAndTheShapes) {
  Graph g;
  const Node image = g.input("image", {6, 5, 2});
  const Node flat = g.flatten(image);
  EXPECT_THAT(message_of([&] { g.conv(flat, 4); }), AllOf(HasSubstr("'conv'"), HasSubstr("(60,)")));
  EXPECT_THAT(message_of([&] { g.conv(image, 4, {.kernel = 7, .padding = ConvPadding::kValid}); }),
              AllOf(HasSubstr("conv"), HasSubstr("(6, 5, 2)"), HasSubstr("kSame")));
  EXPECT_THAT(message_of([&] { g.conv_transpose(flat, 4); }),
              AllOf(HasSubstr("'conv_transpose'"), HasSubstr("(60,)")));
  EXPECT_THAT(message_of([&] { g.conv_transpose(image, 4, {.kernel = 2, .padding = ConvPadding::kEven}); }),
              AllOf(HasSubstr("'conv_transpose'"), HasSubstr("evenly")));
  EXPECT_THAT(message_of([&] { g.conv_transpose(image, 4, {.initializer = Initializer::kDirac}); }),
              AllOf(HasSubstr("'conv_transpose'"), HasSubstr("initializer")));
  EXPECT_THAT(message_of([&] { g.conv(image, 4, {.dilation = 0}); }),
              AllOf(HasSubstr("'conv'"), HasSubstr("dilation")));
  EXPECT_THAT(message_of([&] { g.conv(image, 4, {.dilation = 70000}); }), HasSubstr("spans more than"));
  EXPECT_THAT(message_of([&] { g.conv(image, 4, {.dilation = 3, .padding = ConvPadding::kValid}); }),
              AllOf(HasSubstr("kernel 3 and dilation 3"), HasSubstr("(6, 5, 2)")));
  EXPECT_THAT(message_of([&] { g.conv(image, 4, {.pixels = 2}); }),
              AllOf(HasSubstr("'same'"), HasSubstr("kPixels")));
  EXPECT_THAT(message_of([&] { g.conv(image, 4, {.padding = ConvPadding::kPixels, .pixels = -1}); }),
              HasSubstr("-1 pixels"));
  EXPECT_THAT(message_of([&] { g.conv_transpose(image, 4, {.stride = 2, .output_padding = 2}); }),
              AllOf(HasSubstr("'conv_transpose'"), HasSubstr("output padding of 2"), HasSubstr("stride - 1")));
  EXPECT_THAT(message_of([&] { g.conv_transpose(image, 4, {.padding = ConvPadding::kPixels, .pixels = 4}); }),
              AllOf(HasSubstr("'conv_transpose'"), HasSubstr("less padding")));
  EXPECT_THAT(message_of([&] {
                g.conv(image, 4, {.kernel = {1, 7}, .padding = ConvPadding::kValid});
              }),
              AllOf(HasSubstr("kernel (1, 7) does not fit"), HasSubstr("(6, 0, 4)")));
  EXPECT_THAT(message_of([&] {
                g.conv(image, 4, {.kernel = {3, 2}, .padding = ConvPadding::kEven});
              }),
              AllOf(HasSubstr("kernel (3, 2)"), HasSubstr("evenly")));
  EXPECT_THAT(message_of([&] { g.conv(image, 4, {.stride = {2, 0}}); }), HasSubstr("4, 3 and (2, 0)"));
  EXPECT_THAT(
      message_of([&] { g.conv(image, 4, {.groups = 4}); }),
      AllOf(HasSubstr("'conv'"), HasSubstr("4 groups for 2 channels and 4 filters"), HasSubstr("multiples")));
  EXPECT_THAT(message_of([&] { g.conv(image, 3, {.groups = 2}); }), HasSubstr("2 channels and 3 filters"));
  EXPECT_THAT(message_of([&] { g.conv(image, 4, {.groups = 0}); }), HasSubstr("0 groups"));
  EXPECT_THAT(message_of([&] { g.conv(image, 4, {.groups = 2, .initializer = Initializer::kDirac}); }),
              AllOf(HasSubstr("'conv'"), HasSubstr("several groups"), HasSubstr("initializer")));
  EXPECT_THAT(message_of([&] { g.conv_transpose(image, 3, {.groups = 2}); }),
              AllOf(HasSubstr("'conv_transpose'"), HasSubstr("2 channels and 3 filters")));
  EXPECT_THAT(message_of([&] {
                g.conv_transpose(image, 4, {.stride = {2, 3}, .output_padding = HeightWidth(0, 3)});
              }),
              AllOf(HasSubstr("stride (2, 3)"), HasSubstr("output padding of (0, 3)")));
  EXPECT_THAT(message_of([&] { g.depthwise_conv(flat); }),
              AllOf(HasSubstr("'depthwise_conv'"), HasSubstr("(60,)")));
  EXPECT_THAT(message_of([&] { g.depthwise_conv(image, {.multiplier = 0}); }), HasSubstr("multiplier"));
  EXPECT_THAT(message_of([&] { g.depthwise_conv(image, {.initializer = Initializer::kDirac}); }),
              HasSubstr("initializer"));
  EXPECT_THAT(message_of([&] { g.max_pool(image, 6); }), AllOf(HasSubstr("'max_pool'"), HasSubstr("(6, 5, 2)")));
  EXPECT_THAT(message_of([&] { g.add(image, flat, {.name = "join"}); }),
              AllOf(HasSubstr("'join'"), HasSubstr("(6, 5, 2)"), HasSubstr("(60,)")));
  EXPECT_THAT(message_of([&] { g.dropout(flat, 1.0F); }), HasSubstr("rate"));
  EXPECT_THAT(message_of([&] { g.dense(flat, 0); }), HasSubstr("unit"));
  EXPECT_THAT(message_of([&] { g.global_average_pool(flat); }), HasSubstr("(60,)"));
  EXPECT_THAT(message_of([&] { g.input("other", {Shape::kDynamic, 3}); }), HasSubstr("?"));
}

TEST(Graph, RefusesNodesOfAnotherGraph) {
  Graph g, other;
  const Node foreign = other.input("image", {4});
  EXPECT_THAT(message_of([&] { g.dense(foreign, 2); }), HasSubstr("another graph"));
  EXPECT_THAT(message_of([&] { g.dense({}, 2); }), HasSubstr("another graph"));
}

TEST(Graph, RefusesTwoLayersOfOneName) {
  Graph g;
  const Node x = g.dense(g.input("image", {4}), 2, {.name = "same"});
  EXPECT_THAT(message_of([&] { g.dense(x, 2, {.name = "same"}); }), HasSubstr("'same'"));
}

TEST(Graph, FinishFindsLooseEnds) {
  Graph g;
  const Node x = g.input("image", {4});
  const Node loose = g.dense(x, 2, {.name = "loose"});
  const Node result = g.dense(x, 2);
  EXPECT_THAT(message_of([&] { g.finish(result); }), HasSubstr("'loose'"));
  EXPECT_THAT(message_of([&] { g.finish(x); }), HasSubstr("after it"));
  g.finish(g.add(loose, result));
  EXPECT_THAT(message_of([&] { g.relu(x); }), HasSubstr("finished"));
}

TEST(Graph, MayHaveSeveralResults) {
  Graph g;
  const Node x = g.dense(g.input("image", {4}), 2, {.name = "features"});
  const Node y = g.dense(x, 3, {.name = "logits"});
  EXPECT_THAT(message_of([&] { g.finish({y, x, y}); }), AllOf(HasSubstr("'logits'"), HasSubstr("twice")));
  EXPECT_THAT(message_of([&] { g.finish(Results(std::vector<Node>())); }), HasSubstr("no result"));
  g.finish({y, x});
  EXPECT_THAT(g.outputs(), ElementsAre(y.id, x.id));
  EXPECT_EQ(g.node("features").id, x.id);
  EXPECT_THAT(message_of([&] { g.node("feature"); }), AllOf(HasSubstr("'feature'"), HasSubstr("features")));
}

TEST(Graph, SoftmaxMayStandAnywhere) {
  Graph g;
  const Node y = g.dense(g.softmax(g.input("image", {4})), 2);
  EXPECT_NO_THROW(g.finish(y));
}

}  // namespace
}  // namespace headrace::test
