// Training with activations stored in bf16: on CPU replicas, on ones that compute as a GPU does (twin_kernels.h)
// and on the test devices.
#include "headrace/pipeline/loader.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/step/program.h"
#include "headrace/train/trainer.h"

namespace headrace::test {
namespace {

// Every kind of layer, in the order of a net for images.
Node whole_cnn(Graph& g) {
  Node x = g.conv(g.input("image", {6, 6, 2}), 8, {.kernel = 2, .padding = ConvPadding::kValid});
  x = g.gelu(g.batch_norm(g.max_pool(x, 2), {.momentum = 0.6F, .scale = false}));
  x = g.add(x, g.conv(g.silu(x), 8, {.bias = false}));
  x = g.dropout(g.dense(g.flatten(x), 12, {.activation = Activation::kRelu}), 0.2F);
  return g.dense(x, 4, {.bias = false});
}

Node averaging_cnn(Graph& g) {
  return g.dense(g.global_average_pool(g.relu(g.conv(g.input("image", {6, 6, 2}), 8))), 4);
}

// What f32 on the CPU is compared with; each kind once.
std::vector<std::string> kinds() {
  std::vector<std::string> kinds{"cpu", "twin"};
  if (test_kind() != "cpu" && test_kind() != "twin") kinds.push_back(test_kind());
  return kinds;
}

Dataset noisy_images() { return blobs(60, {6, 6, 2}).batch({.global_batch = 16}); }

// The gradients of one batch at the initial parameters.
std::vector<float> gradients(const std::string& kind, const Net& net, Precision precision) {
  Training training(kind, 1);
  Model model = training.strategy.build(net, {.seed = 3});
  model.compile({.optimizer = adam(1e-2F), .precision = precision});
  Loader loader(noisy_images(), training.devices);
  Trainer trainer(training.strategy, model, loader, {.seed = 5});
  trainer.gradients(std::move(*trainer.take()));
  trainer.finish();
  return gradients_of(model, training.strategy);
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    error += difference * difference;
    norm += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  EXPECT_GT(norm, 0);
  return std::sqrt(error / norm);
}

// In nets this small a few percent are a relu or a maximum that rounding decides the other way.
TEST(HalfActivations, GradientsAreThoseOfF32ToTheAccuracyOfBf16) {
  for (const Net& net : {Net(whole_cnn), Net(averaging_cnn), Net(small_cnn), Net(norm_cnn)}) {
    const auto expected = gradients("cpu", net, Precision::kF32);
    for (const std::string& kind : kinds()) {
      // In f32 a GPU's kernels differ from the CPU's by the order of sums only.
      EXPECT_LT(distance(gradients(kind, net, Precision::kF32), expected), 1e-5 * slack()) << kind;
      const double error = distance(gradients(kind, net, Precision::kBF16), expected);
      EXPECT_LT(error, 0.1) << kind;
      EXPECT_GT(error, 1e-4) << kind << ": nothing was rounded";
    }
  }
}

TEST(HalfActivations, TrainingEndsWhereF32Does) {
  const auto train = [](const std::string& kind, Precision precision) {
    Training training(kind, 1);
    Model model = training.strategy.build(whole_cnn, {.seed = 3});
    model.compile({.optimizer = adam(1e-2F), .precision = precision});
    const History history = model.fit(noisy_images(), {.epochs = 4, .validation = noisy_images(), .verbose = 0});
    model.check_mirrored();
    return std::vector<double>{history["loss"].front(), history["loss"].back(), history["val_loss"].back(),
                               model.evaluate(noisy_images()).loss};
  };
  const auto expected = train("cpu", Precision::kF32);
  for (const std::string& kind : kinds()) {
    SCOPED_TRACE(kind);
    const auto rounded = train(kind, Precision::kBF16);
    EXPECT_LT(rounded[1], 0.7 * rounded[0]);
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(rounded[i], expected[i], 0.06) << i;
    EXPECT_DOUBLE_EQ(rounded[2], rounded[3]);
  }
}

TEST(HalfActivations, MirroredReplicasStayBitEqualAndRunsRepeat) {
  const auto hash = [](const std::string& kind, int replicas) {
    Training training(kind, replicas);
    Model model = training.strategy.build(whole_cnn, {.seed = 3});
    model.compile({.optimizer = sgd(1e-2F, {.momentum = 0.9F}), .precision = Precision::kBF16});
    model.fit(blobs(37, {6, 6, 2}).batch({.global_batch = 16}),
              {.epochs = 2, .verbose = 0, .step = {.mirror_check_every = 1}});
    model.check_mirrored();
    return model.weights_sha256();
  };
  for (const int replicas : {2, 3}) {
    for (const std::string& kind : kinds())
      EXPECT_EQ(hash(kind, replicas), hash(kind, replicas)) << kind << replicas;
  }
}

TEST(HalfActivations, PredictionsAreF32LogitsNearThoseOfF32) {
  const auto predict = [](const std::string& kind, Precision precision) {
    Training training(kind, kind == "cpu" ? 1 : 2);
    Model model = training.strategy.build(averaging_cnn, {.seed = 3});
    model.compile({.precision = precision});
    return model.predict(noisy_images());
  };
  const Predictions expected = predict("cpu", Precision::kF32);
  for (const std::string& kind : kinds()) {
    SCOPED_TRACE(kind);
    const Predictions rounded = predict(kind, Precision::kBF16);
    ASSERT_EQ(rounded.values.size(), expected.values.size());
    EXPECT_EQ(rounded.records, expected.records);
    EXPECT_LT(distance(rounded.values, expected.values), 0.02);
  }
}

TEST(HalfActivations, BytesOfTheDataAreRoundedOnce) {
  std::vector<std::uint8_t> pixels(16 * 8);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 2);
  const Dataset data = Dataset::from(in_memory("bytes", 16,
                                               {array_of("image", Shape{8}, pixels),
                                                array_of("label", Shape{}, std::vector<std::int64_t>(16, 1))}))
                           .batch({.global_batch = 8});
  const auto predict = [&](const std::string& kind, Precision precision) {
    Training training(kind, 1);
    Model model = training.strategy.build(small_mlp, {.seed = 3});
    model.compile({.precision = precision});
    return model.predict(data).values;
  };
  const std::vector<float> expected = predict("cpu", Precision::kF32);
  for (const std::string& kind : kinds()) {
    EXPECT_LT(distance(predict(kind, Precision::kBF16), expected), 0.02) << kind;
  }
}

TEST(HalfActivations, HalveTheMemoryOfAStep) {
  Graph graph;
  graph.finish(averaging_cnn(graph));
  const VariableLayout layout(graph);
  const Program wide(graph, layout, {.rows = 512, .precision = Precision::kBF16});
  const Program half(graph, layout, {.rows = 512, .precision = Precision::kBF16, .activations = DType::kBF16});
  EXPECT_LT(half.workspace_bytes(), wide.workspace_bytes() * 6 / 10);
}

}  // namespace
}  // namespace headrace::test
