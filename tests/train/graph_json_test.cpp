#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/graph.h"
#include "headrace/train/nets.h"

namespace headrace::test {
namespace {

struct JsonCase {
  std::string name;
  Net net;
  Shape shape;
};

std::ostream& operator<<(std::ostream& out, const JsonCase& each) { return out << each.name; }

const Shape kSmallImage{6, 6, 2};

const JsonCase kJsonCases[] = {
    {"dense",
     [](Graph& g) {
       const Node x = g.dense(g.input("image", {5}), 4,
                              {.activation = Activation::kGelu,
                               .bias = false,
                               .initializer = Initializer::kUnitDeviation,
                               .name = "first"});
       return g.dense(x, 3, {.initializer = Initializer::kHeUniform});
     },
     {5}},
    {"conv",
     [](Graph& g) {
       Node x = g.conv(g.input("image", kSmallImage), 3,
                       {.kernel = 2, .padding = ConvPadding::kValid, .initializer = Initializer::kDirac});
       x = g.conv(x, 4,
                  {.stride = 2,
                   .padding = ConvPadding::kEven,
                   .activation = Activation::kSilu,
                   .bias = false,
                   .trained_weights = false,
                   .initializer = Initializer::kFanInUniform});
       return g.flatten(g.conv(x, 2));
     },
     kSmallImage},
    {"other_convolutions",
     [](Graph& g) {
       Node x = g.depthwise_conv(g.input("image", kSmallImage), {.kernel = 2,
                                                                 .stride = 2,
                                                                 .padding = ConvPadding::kValid,
                                                                 .multiplier = 2,
                                                                 .activation = Activation::kRelu,
                                                                 .bias = false,
                                                                 .trained_weights = false,
                                                                 .initializer = Initializer::kFanInUniform});
       x = g.conv_transpose(x, 3,
                            {.kernel = 5,
                             .stride = 2,
                             .padding = ConvPadding::kEven,
                             .activation = Activation::kTanh,
                             .bias = false,
                             .trained_weights = false,
                             .initializer = Initializer::kHeUniform});
       return g.flatten(g.conv_transpose(g.depthwise_conv(x), 2, {.padding = ConvPadding::kValid}));
     },
     kSmallImage},
    {"dilated_convolutions",
     [](Graph& g) {
       Node x = g.conv(g.input("image", kSmallImage), 3, {.dilation = 2});
       x = g.conv(x, 2, {.kernel = 2, .padding = ConvPadding::kPixels, .pixels = 1});
       x = g.depthwise_conv(x, {.dilation = 3, .padding = ConvPadding::kPixels, .pixels = 3});
       x = g.conv_transpose(x, 2, {.stride = 3, .dilation = 2, .output_padding = 1});
       return g.flatten(g.conv_transpose(
           x, 2, {.stride = 2, .padding = ConvPadding::kPixels, .pixels = 2, .output_padding = 0}));
     },
     kSmallImage},
    {"uneven_convolutions_of_groups",
     [](Graph& g) {
       Node x = g.conv(g.input("image", kSmallImage), 4, {.kernel = {1, 3}, .dilation = {1, 2}, .groups = 2});
       x = g.depthwise_conv(x, {.stride = {2, 1}, .padding = ConvPadding::kPixels, .pixels = {1, 0}});
       return g.flatten(
           g.conv_transpose(x, 2, {.stride = {3, 2}, .output_padding = HeightWidth(2, 1), .groups = 2}));
     },
     kSmallImage},
    {"batch_norm",
     [](Graph& g) {
       const Node x = g.batch_norm(g.input("image", kSmallImage), {.momentum = 0.7F, .epsilon = 1e-12F});
       return g.dense(g.flatten(g.batch_norm(x, {.scale = false, .name = "plain"})), 3);
     },
     kSmallImage},
    {"pooling",
     [](Graph& g) {
       const Node x = g.max_pool(g.conv(g.input("image", kSmallImage), 3), 3, {.stride = 1});
       return g.dense(g.global_average_pool(x), 3);
     },
     kSmallImage},
    {"elementwise",
     [](Graph& g) {
       const Node x = g.dense(g.input("image", {5}), 4);
       const Node sum = g.add({g.relu(x), g.gelu(x), g.silu(g.dropout(x, 0.3F))}, {.name = "join"});
       return g.softmax(g.scale(sum, 0.1F));
     },
     {5}},
    {"activations",
     [](Graph& g) {
       Node x = g.dense(g.input("image", {5}), 4, {.activation = Activation::kLeakyRelu});
       x = g.dense(x, 4, {.activation = Activation::kTanh});
       return g.dense(g.elu(g.softplus(g.layer_norm(x, {.epsilon = 0.01F, .center = false}))), 3,
                      {.activation = Activation::kSoftmax});
     },
     {5}},
    {"embedding",
     [](Graph& g) { return g.dense(g.embedding(g.input("label", Shape{}), 4, 6, {.name = "words"}), 3); },
     {5}},
    {"attention",
     [](Graph& g) {
       const Node x = g.position_embedding(g.dense(g.input("image", {3, 4}), 6));
       const Node y = g.attention({.query = x, .value = g.dense(x, 4), .key = x}, 2, {.causal = true});
       return g.dense(g.global_average_pool(g.multi_head_attention(
                          {.query = y, .value = x, .mask = g.sigmoid(g.dense(g.flatten(x), 3))}, 2, 3,
                          {.value_dim = 2, .output_dim = 5, .dropout = 0.25F, .bias = false})),
                      3);
     },
     {3, 4}},
    {"joined",
     [](Graph& g) {
       const Node x = g.conv(g.input("image", kSmallImage), 3);
       const Node y = g.average_pool(g.concat({x, g.sigmoid(x), g.tanh(x)}), 3, {.stride = 2});
       return g.dense(g.flatten(g.batch_norm(y, {.synchronised = true})), 3);
     },
     kSmallImage},
    {"shared",
     [](Graph& g) {
       const Node x = g.input("image", {4});
       const Node once = g.dense(x, 4, {.activation = Activation::kRelu, .name = "twice"});
       return g.dense(g.again(once, {once}), 3);
     },
     {4}},
    {"mnist_mlp", mnist_mlp, {28, 28, 1}},
    {"fashion_cnn", fashion_cnn, {28, 28, 1}},
    {"cifar10_cnn", cifar10_cnn, {32, 32, 3}},
    {"cifar10_speed_net",
     [](Graph& g) { return cifar10_speed_net(g, {.first = 24, .second = 32, .third = 32}); },
     {32, 32, 3}},
    {"resnet18",
     [](Graph& g) { return resnet18(g, {.first = 4, .second = 4, .third = 8, .fourth = 8}); },
     {32, 32, 3}},
};

class GraphJsonTest : public testing::TestWithParam<JsonCase> {};

TEST_P(GraphJsonTest, GoesThereAndBack) {
  Training training(1);
  Model model = training.strategy.build(GetParam().net, {.seed = 3});
  const std::string text = to_json(model.graph());
  Model same = training.strategy.build(net_from_json(text), {.seed = 3});
  EXPECT_EQ(to_json(same.graph()), text);
  EXPECT_EQ(same.summary(), model.summary());
  EXPECT_EQ(same.variable_names(), model.variable_names());
  EXPECT_EQ(same.weights_sha256(), model.weights_sha256());
  const Dataset data = blobs(6, GetParam().shape, 3).batch({.global_batch = 4});
  EXPECT_EQ(same.predict(data).values, model.predict(data).values);
}

INSTANTIATE_TEST_SUITE_P(Nets, GraphJsonTest, testing::ValuesIn(kJsonCases),
                         [](const auto& each) { return each.param.name; });

TEST(GraphJson, IsTextThatAPersonCanRead) {
  Graph g;
  g.finish(g.dense(g.input("image", {2}), 3, {.activation = Activation::kRelu, .name = "head"}));
  const std::string text = to_json(g);
  EXPECT_THAT(text, AllOf(HasSubstr("\"kind\": \"dense\""), HasSubstr("\"units\": 3"),
                          HasSubstr("\"initializer\": \"glorot_uniform\""), HasSubstr("head/relu")));
}

std::string refusal(const std::string& json) {
  return message_of([&] { graph_from_json(json); });
}

std::string with_layer(const std::string& layer) {
  return R"({"version": 1, "layers": [{"name": "x", "kind": "input", "attributes": {"shape": [4]}}, )" + layer +
         R"(], "outputs": ["y"]})";
}

TEST(GraphJson, PairsAreWrittenWhereTheAxesDiffer) {
  const auto attributes = [](const ConvTransposeLayerOptions& options) {
    Graph g;
    const Node x = g.conv_transpose(g.input("image", kSmallImage), 4, options);
    g.finish(x);
    return g.layer(x.id).attributes();
  };
  using Ints = std::vector<std::int64_t>;
  const LayerAttributes square = attributes({.stride = 2, .dilation = 3, .output_padding = 1});
  EXPECT_EQ((Ints{square.whole("kernel"), square.whole("stride"), square.whole("dilation"), square.whole("pixels"),
                  square.whole("output_padding"), square.whole("groups")}),
            (Ints{3, 2, 3, 0, 1, 1}));
  const LayerAttributes uneven =
      attributes({.kernel = {3, 2}, .padding = ConvPadding::kPixels, .pixels = {1, 0}, .groups = 2});
  EXPECT_EQ(uneven.whole_numbers("kernel"), (Ints{3, 2}));
  EXPECT_EQ(uneven.whole_numbers("pixels"), (Ints{1, 0}));
  EXPECT_EQ(uneven.text("padding"), "pixels");
  EXPECT_EQ(uneven.whole("groups"), 2);
}

TEST(GraphJson, AbsentAttributesHaveTheirDefaults) {
  const auto graph = graph_from_json(with_layer(
      R"({"name": "y", "kind": "dense", "inputs": ["x"], "attributes": {"units": 3, "initializer": "he_uniform"}})"));
  EXPECT_EQ(graph->layer(1).attributes(),
            (LayerAttributes{{"units", 3}, {"bias", true}, {"initializer", std::string("he_uniform")}}));
}

TEST(GraphJson, ErrorsNameThePlace) {
  EXPECT_THAT(refusal("{"), HasSubstr("parse"));
  EXPECT_THAT(refusal(R"({"version": 2})"), HasSubstr("version"));
  EXPECT_THAT(refusal(R"({"version": 1, "layers": 3})"), HasSubstr("layers"));
  EXPECT_THAT(refusal(with_layer(R"({"name": "y", "kind": "mine", "inputs": ["x"]})")),
              AllOf(HasSubstr("layers[1]"), HasSubstr("'mine'"), HasSubstr("hand over")));
  EXPECT_THAT(refusal(with_layer(R"({"name": "y", "kind": "relu", "inputs": ["z"]})")), HasSubstr("'z'"));
  EXPECT_THAT(refusal(with_layer(R"({"name": "y", "kind": "dropout", "inputs": ["x"]})")), HasSubstr("'rate'"));
  EXPECT_THAT(refusal(with_layer(
                  R"({"name": "y", "kind": "dropout", "inputs": ["x"], "attributes": {"rate": 0.5, "by": 1}})")),
              HasSubstr("'by'"));
  EXPECT_THAT(
      refusal(with_layer(R"({"name": "y", "kind": "dropout", "inputs": ["x"], "attributes": {"rate": 2}})")),
      AllOf(HasSubstr("layers[1] ('y')"), HasSubstr("rate")));
  EXPECT_THAT(refusal(with_layer(
                  R"({"name": "y", "kind": "depthwise_conv", "inputs": ["x"], "attributes": {"kernel": [1, 2, 3],
                             "padding": "same"}})")),
              AllOf(HasSubstr("layers[1] ('y')"), HasSubstr("'kernel' is neither one whole number nor two")));
  EXPECT_THAT(refusal(with_layer(R"({"name": "y", "kind": "relu", "inputs": ["x", "x"]})")),
              HasSubstr("2 inputs"));
  EXPECT_THAT(refusal(with_layer(R"({"name": "z", "kind": "relu", "inputs": ["x"]})")), HasSubstr("'y'"));
}

}  // namespace
}  // namespace headrace::test
