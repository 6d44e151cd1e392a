// Transposed, depthwise, grouped and uneven convolutions through whole nets, against the plainest loops.
#include "headrace/tests/support/reference_layers.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/graph.h"

namespace headrace::test {
namespace {

constexpr std::int64_t kImages = 3;

// Numbers of both signs for each image, and the result of a net of one layer with weights alike.
struct LayerRun {
  Reals x, weights, bias;
  std::vector<float> result;
  Shape shape;  // of one result
};

LayerRun run_layer(const Net& net, const Shape& image) {
  Training training(1);
  Model model = training.strategy.build(net, {.seed = 3});
  const auto images = random_floats(kImages * image.elements(), 1);
  LayerRun seen{.x = reals(images), .weights = {}, .bias = {}, .result = {}, .shape = {}};
  for (const std::string& name : model.variable_names()) {
    const auto values = random_floats(static_cast<std::int64_t>(model.read_variable(name).size()), 2);
    model.write_variable(name, values);
    (name.ends_with("bias") ? seen.bias : seen.weights) = reals(values);
  }
  const Dataset data = labelled(image, images, {0, 0, 0}).batch({.global_batch = 2});
  seen.result = model.predict(data).values;
  seen.shape = model.graph().layer(model.graph().output()).shape();
  return seen;
}

void expect_close(const std::vector<float>& actual, const Reals& expected, const Reals& bias) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double added = bias.empty() ? 0 : bias[i % bias.size()];
    ASSERT_NEAR(actual[i], expected[i] + added, 2e-5 * slack()) << i;
  }
}

TEST(OtherConvolutions, ATransposedOneIsTheGradientOfAConvolution) {
  const Shape image{3, 4, 2};
  struct Case {
    ConvTransposeLayerOptions options;
    ConvOptions of;  // the convolution whose gradient it is
    std::int64_t height, width;
  };
  // Padding as Keras and PyTorch have it: of the convolution from the result to the image.
  const Case cases[] = {
      {{.kernel = 3, .stride = 2}, {.stride = 2, .pad_bottom = 1, .pad_right = 1}, 6, 8},
      {{.kernel = 4, .stride = 2},
       {.stride = 2, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1},
       6,
       8},
      {{.kernel = 3, .stride = 2, .padding = ConvPadding::kEven},
       {.stride = 2, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1},
       6,
       8},
      {{.kernel = 3, .stride = 2, .padding = ConvPadding::kValid}, {.stride = 2}, 7, 9},
      {{.kernel = 1, .stride = 3, .bias = false}, {.stride = 3}, 9, 12},
      {{.kernel = 2, .stride = 1, .bias = false}, {.stride = 1, .pad_bottom = 1, .pad_right = 1}, 3, 4},
      {{.kernel = 3, .stride = 2, .output_padding = 0},
       {.stride = 2, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1},
       5,
       7},
      {{.kernel = 3, .stride = 2, .output_padding = 1}, {.stride = 2, .pad_bottom = 1, .pad_right = 1}, 6, 8},
      {{.kernel = 4, .stride = 2, .output_padding = 0},
       {.stride = 2, .pad_top = 2, .pad_left = 2, .pad_bottom = 2, .pad_right = 2},
       4,
       6},
      {{.kernel = 3, .stride = 3, .padding = ConvPadding::kValid, .output_padding = 2}, {.stride = 3}, 11, 14},
      {{.kernel = 1, .stride = 2, .output_padding = 1}, {.stride = 2}, 6, 8},
      {{.kernel = 3, .stride = 2, .padding = ConvPadding::kPixels, .pixels = 1, .output_padding = 1},
       {.stride = 2, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1},
       6,
       8},
      {{.kernel = 5, .stride = 1, .padding = ConvPadding::kPixels, .pixels = 3},
       {.pad_top = 3, .pad_left = 3, .pad_bottom = 3, .pad_right = 3},
       1,
       2},
      {{.kernel = 3, .stride = 1, .dilation = 2, .padding = ConvPadding::kValid}, {.dilation = 2}, 7, 8},
      {{.kernel = 2, .stride = 2, .dilation = 3},
       {.stride = 2, .dilation = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1},
       6,
       8},
      {{.kernel = {1, 4}, .stride = {1, 2}}, {.stride = {1, 2}, .pad_left = 1, .pad_right = 1}, 3, 8},
      {{.kernel = {3, 2}, .stride = {3, 1}, .dilation = {1, 2}, .padding = ConvPadding::kValid, .groups = 2},
       {.stride = {3, 1}, .dilation = {1, 2}, .groups = 2},
       9,
       6},
      {{.stride = {1, 2},
        .padding = ConvPadding::kPixels,
        .pixels = {0, 2},
        .output_padding = HeightWidth(0, 1),
        .groups = 2},
       {.stride = {1, 2}, .pad_left = 2, .pad_right = 2, .groups = 2},
       5,
       6},
  };
  for (const Case& each : cases) {
    const LayerRun got =
        run_layer([&](Graph& g) { return g.conv_transpose(g.input("image", image), 6, each.options); }, image);
    EXPECT_EQ(got.shape, (Shape{each.height, each.width, 6}));
    const HeightWidth kernel = each.options.kernel;
    const ConvSizes sizes{kImages, each.height, each.width, 6, 2, kernel.height, kernel.width, each.of};
    ASSERT_EQ(sizes.out_height(), 3);
    ASSERT_EQ(sizes.out_width(), 4);
    expect_close(got.result, conv_backward_data(sizes, got.x, got.weights), got.bias);
  }
}

TEST(OtherConvolutions, OnesOfGroupsAndUnevenWindowsAreTheirLoops) {
  const Shape image{7, 8, 4};
  struct Case {
    ConvLayerOptions options;
    ConvOptions of;
    std::int64_t height, width;
  };
  const Case cases[] = {
      {{.kernel = {1, 7}}, {.pad_left = 3, .pad_right = 3}, 7, 8},
      {{.kernel = {3, 2}, .stride = {2, 1}},
       {.stride = {2, 1}, .pad_top = 1, .pad_bottom = 1, .pad_right = 1},
       4,
       8},
      {{.kernel = {3, 5}, .dilation = {2, 1}, .padding = ConvPadding::kEven},
       {.dilation = {2, 1}, .pad_top = 2, .pad_left = 2, .pad_bottom = 2, .pad_right = 2},
       7,
       8},
      {{.stride = {1, 3}, .padding = ConvPadding::kPixels, .pixels = {0, 2}, .groups = 2},
       {.stride = {1, 3}, .pad_left = 2, .pad_right = 2, .groups = 2},
       5,
       4},
      {{.kernel = {2, 1}, .dilation = {3, 5}, .padding = ConvPadding::kValid, .groups = 4},
       {.dilation = {3, 1}, .groups = 4},
       4,
       8},
  };
  for (const Case& each : cases) {
    const LayerRun got =
        run_layer([&](Graph& g) { return g.conv(g.input("image", image), 8, each.options); }, image);
    EXPECT_EQ(got.shape, (Shape{each.height, each.width, 8}));
    const HeightWidth kernel = each.options.kernel;
    const ConvSizes sizes{kImages, 7, 8, 4, 8, kernel.height, kernel.width, each.of};
    expect_close(got.result, conv_forward(sizes, got.x, got.weights, {}), got.bias);
  }
}

// Each channel is a group.
TEST(OtherConvolutions, ADepthwiseOneTakesEachChannelByItself) {
  const Shape image{5, 4, 3};
  for (const int multiplier : {1, 2}) {
    const LayerRun got = run_layer(
        [&](Graph& g) {
          return g.depthwise_conv(g.input("image", image),
                                  {.kernel = {3, 2}, .stride = {2, 1}, .multiplier = multiplier});
        },
        image);
    EXPECT_EQ(got.shape, (Shape{3, 4, 3 * multiplier}));
    const ConvOptions of{.stride = {2, 1}, .pad_top = 1, .pad_bottom = 1, .pad_right = 1, .groups = 3};
    const ConvSizes sizes{kImages, 5, 4, 3, 3 * multiplier, 3, 2, of};
    expect_close(got.result, conv_forward(sizes, got.x, got.weights, {}), got.bias);
  }
}

double limit_of(const Net& net) {
  Training training(1);
  Model model = training.strategy.build(net, {.seed = 3});
  double largest = 0;
  for (const float value : model.read_variable("layer/weights"))
    largest = std::max(largest, std::abs(double{value}));
  return largest;
}

TEST(OtherConvolutions, BeginWithinKerasLimits) {
  const Shape image{4, 4, 32};
  const auto transposed = [&](Graph& g) {
    return g.conv_transpose(g.input("image", image), 64, {.kernel = 3, .name = "layer"});
  };
  EXPECT_NEAR(limit_of(transposed), std::sqrt(6.0 / (9 * 64 + 9 * 32)), 1e-4);
  const auto depthwise = [&](Initializer initializer) {
    return limit_of([&](Graph& g) {
      return g.depthwise_conv(g.input("image", image),
                              {.kernel = 5, .multiplier = 4, .initializer = initializer, .name = "layer"});
    });
  };
  const auto grouped = [&](Initializer initializer) {
    return limit_of([&](Graph& g) {
      return g.conv(g.input("image", image), 64,
                    {.kernel = {1, 5}, .groups = 4, .initializer = initializer, .name = "layer"});
    });
  };
  EXPECT_NEAR(grouped(Initializer::kGlorotUniform), std::sqrt(6.0 / (5 * 8 + 5 * 64)), 1e-3);
  EXPECT_NEAR(grouped(Initializer::kFanInUniform), 1 / std::sqrt(5.0 * 8), 1e-3);
  EXPECT_NEAR(depthwise(Initializer::kGlorotUniform), std::sqrt(6.0 / (25 * 32 + 25 * 4)), 1e-3);
  EXPECT_NEAR(depthwise(Initializer::kFanInUniform), 1.0 / 5, 1e-3);
}

// A net that makes images smaller and larger again learns to copy them, in f32 and with activations in bf16, with
// the same weights on all replicas.
TEST(OtherConvolutions, LearnToCopyImages) {
  const Shape image{8, 8, 2};
  const auto values = random_floats(32 * image.elements(), 5);
  std::vector<float> smooth(values.size());
  for (std::size_t i = 0; i < smooth.size(); ++i) smooth[i] = values[i / 16 * 16 + i % 2];
  const Dataset data =
      Dataset::from(in_memory("copies", 32, {array_of("image", image, smooth), array_of("label", image, smooth)}))
          .batch({.global_batch = 16});
  for (const Precision precision : {Precision::kF32, Precision::kBF16}) {
    Training training(2);
    Model model = training.strategy.build(
        [&](Graph& g) {
          Node x = g.conv(g.input("image", image), 8, {.stride = 2, .activation = Activation::kRelu});
          x = g.depthwise_conv(x, {.activation = Activation::kSilu});
          x = g.conv(x, 8, {.kernel = {1, 3}, .groups = 2, .activation = Activation::kSilu});
          return g.conv_transpose(x, 2, {.kernel = 4, .stride = 2});
        },
        {.seed = 3});
    model.compile({.optimizer = adam(1e-2F), .loss = mean_squared_error(), .metrics = {}, .precision = precision});
    const History history = model.fit(data, {.epochs = 40, .verbose = 0});
    model.check_mirrored();
    EXPECT_LT(history["loss"].back(), 0.2 * history["loss"].front());
  }
}

// Where a dense layer follows, activations are stored in bf16, and on GPUs the weights of products have a copy in
// it.
TEST(OtherConvolutions, LearnInBf16AsInF32) {
  const Dataset data = loop_data();
  std::vector<double> last;
  for (const Precision precision : {Precision::kF32, Precision::kBF16}) {
    Training training(2);
    Model model = training.strategy.build(
        [](Graph& g) {
          Node x = g.conv(g.input("image", {6, 6, 2}), 8, {.stride = 2, .activation = Activation::kRelu});
          x = g.depthwise_conv(x, {.multiplier = 2, .activation = Activation::kRelu});
          x = g.conv(x, 16, {.kernel = {3, 1}, .groups = 4, .activation = Activation::kRelu});
          x = g.conv_transpose(x, 4, {.stride = {2, 1}, .groups = 2, .activation = Activation::kGelu});
          return g.dense(g.flatten(g.depthwise_conv(x, {.stride = 2, .bias = false})), 4);
        },
        {.seed = 3});
    model.compile({.optimizer = adam(1e-2F), .precision = precision});
    const History history = model.fit(data, {.epochs = 8, .verbose = 0});
    model.check_mirrored();
    EXPECT_LT(history["loss"].back(), 0.6 * history["loss"].front());
    last.push_back(history["loss"].back());
  }
  EXPECT_NEAR(last[0], last[1], 0.05) << "one net, two precisions";
}

}  // namespace
}  // namespace headrace::test
