// Training in bfloat16: weights and activations.
#include "headrace/pipeline/loader.h"
#include "headrace/tests/support/twin_kernels.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/model/value_types.h"
#include "headrace/train/nets.h"
#include "headrace/train/step/program.h"
#include "headrace/train/trainer.h"

namespace headrace::test {
namespace {

// What a step in bf16 precision need not convert: weights, of which optimizers write the bf16 copy, and images,
// which input kernels make in bf16. No bit of the result is another.

// A GPU's kernels, which count the conversions that cuDNN and cuBLASLt would need for the products of bf16
// precision: each operand that is f32, and a convolution's weight gradient, which cuDNN writes in bf16 only.
class CountingKernels final : public TwinKernels {
 public:
  CountingKernels(Device& cpu, DType weights) : TwinKernels(cpu), weights_(weights) {}

  struct Counts {
    int weights = 0, others = 0;
    bool operator==(const Counts&) const = default;
  };
  Counts counts;

  DType product_weights_type(Precision precision) const noexcept override {
    return precision == Precision::kBF16 ? weights_ : DType::kF32;
  }

  void run(Stream& stream, const kernel::Convert& of) override {
    ++counts.others;
    TwinKernels::run(stream, of);
  }
  void run(Stream& stream, const kernel::DenseForward& of) override {
    count(of.x, of.weights);
    if (of.bias.defined() && of.y.dtype == DType::kBF16) ++counts.others;
    run_uncounted(stream, of);
  }
  void run(Stream& stream, const kernel::DenseBackwardData& of) override {
    count(of.dy, of.weights);
    run_uncounted(stream, of);
  }
  void run(Stream& stream, const kernel::DenseBackwardWeights& of) override {
    counts.others += (of.x.dtype == DType::kF32) + (of.dy.dtype == DType::kF32);
    run_uncounted(stream, of);
  }
  void run(Stream& stream, const kernel::ConvForward& of) override {
    count(of.x, of.weights);
    run_uncounted(stream, of);
  }
  void run(Stream& stream, const kernel::ConvBackwardData& of) override {
    count(of.dy, of.weights);
    run_uncounted(stream, of);
  }
  void run(Stream& stream, const kernel::ConvBackwardWeights& of) override {
    if (of.dweights.defined()) ++counts.others;
    run_uncounted(stream, of);
  }

 private:
  void count(const TensorView& activations, const TensorView& weights) {
    counts.others += activations.dtype == DType::kF32;
    counts.weights += weights.dtype == DType::kF32;
  }
  // The twin's own conversions are not a GPU's.
  template <typename Arguments>
  void run_uncounted(Stream& stream, const Arguments& of) {
    const Counts before = counts;
    TwinKernels::run(stream, of);
    counts = before;
  }

  DType weights_;
};

class CountingDevice final : public DiscreteDevice {
 public:
  CountingDevice(std::unique_ptr<Device> inner, DType weights)
      : DiscreteDevice(std::move(inner)), kernels_(this->inner(), weights) {}

  std::unique_ptr<Stream> create_stream() override { return std::make_unique<CpuStream>(*this, 1); }
  CountingKernels* kernels() noexcept override { return &kernels_; }

 private:
  CountingKernels kernels_;
};

struct Counting {
  explicit Counting(DType weights, int replicas = 1)
      : devices(devices_of<CountingDevice>(replicas, weights)), strategy(devices, {.announce = false}) {}

  CountingKernels& kernels() { return *static_cast<CountingDevice&>(devices[0]).kernels(); }

  DeviceGroup devices;
  Strategy strategy;
};

// Frozen and trained convolutions, and a dense layer of either kind.
Node net_of_products(Graph& g) {
  Node x = g.conv(g.input("image", {6, 6, 2}), 8, {.activation = Activation::kRelu, .trained_weights = false});
  x = g.relu(g.batch_norm(g.conv(x, 8, {.bias = false})));
  x = g.dense(g.flatten(g.max_pool(x, 2)), 12, {.activation = Activation::kRelu});
  return g.dense(x, 4, {.bias = false});
}

Dataset images(std::int64_t count = 60) { return blobs(count, {6, 6, 2}).batch({.global_batch = 16}); }

Model trained(Strategy& strategy, const Optimizer& optimizer) {
  Model model = strategy.build(net_of_products, {.seed = 3});
  model.compile({.optimizer = optimizer, .precision = Precision::kBF16});
  model.fit(images(), {.epochs = 2, .validation = images(), .verbose = 0, .step = {.mirror_check_every = 1}});
  return model;
}

TEST(HalfWeights, ChangeNoBitOfTheResult) {
  const Optimizer followed = with_all_around(adam(1e-2F));
  for (const Optimizer& optimizer : {adam(1e-2F), sgd(1e-2F, {.momentum = 0.9F}), grouped(), followed}) {
    for (const int replicas : {1, 2}) {
      Counting converting(DType::kF32, replicas), keeping(DType::kBF16, replicas);
      Model expected = trained(converting.strategy, optimizer), model = trained(keeping.strategy, optimizer);
      EXPECT_EQ(model.weights_sha256(), expected.weights_sha256()) << optimizer.name() << ", " << replicas;
      EXPECT_EQ(model.evaluate(images()).loss, expected.evaluate(images()).loss);
      EXPECT_EQ(model.predict(images()).values, expected.predict(images()).values);
      if (optimizer.average) {
        const EvaluateOptions averaged{.averaged_weights = true};
        EXPECT_EQ(model.evaluate(images(), averaged).loss, expected.evaluate(images(), averaged).loss);
      }
      EXPECT_EQ(keeping.kernels().counts.weights, 0);
    }
  }
}

TEST(HalfWeights, FollowWhatIsWrittenAndWhatWarmingUpPutsBack) {
  Counting converting(DType::kF32), keeping(DType::kBF16);
  const auto values_of = [](Strategy& strategy) {
    Model model = strategy.build(net_of_products, {.seed = 3});
    model.compile({.precision = Precision::kBF16});
    for (const char* name : {"conv/weights", "dense/weights"}) {
      std::vector<float> values = model.read_variable(name);
      for (float& value : values) value = 0.3F - value;
      model.write_variable(name, values);
    }
    PreparedFit fit(model, images(), {.verbose = 0, .step = {.mirror_check_every = 1}});
    fit.warm_up();
    model.check_mirrored();
    const Predictions before = model.predict(images());
    fit.run();
    model.compile({.precision = Precision::kBF16});
    return std::make_pair(before.values, model.predict(images()).values);
  };
  EXPECT_EQ(values_of(keeping.strategy), values_of(converting.strategy));
}

TEST(HalfWeights, ThatAreNotWhatTheVariableRoundsToAreNoticed) {
  Counting keeping(DType::kBF16, 2);
  Model model = keeping.strategy.build(net_of_products, {.seed = 3});
  model.compile({.precision = Precision::kBF16});
  model.check_mirrored();
  model.variable("dense/weights", 1).as<float>()[3] += 1;
  const DeviceError error = error_of<DeviceError>([&] { model.check_mirrored(); });
  EXPECT_THAT(error.what(), HasSubstr("bf16 copy of variable 'dense/weights'"));
  EXPECT_THAT(error.what(), HasSubstr("gpu:1"));
  model.compile({.precision = Precision::kF32});  // there are no copies then
  EXPECT_FALSE(model.state().variables.rounded_parameters(0).defined());
}

TEST(HalfWeights, AreKeptWhereAllDevicesWantThem) {
  Counting keeping(DType::kBF16);
  EXPECT_EQ(storage_types(keeping.strategy, Precision::kBF16).product_weights, DType::kBF16);
  EXPECT_EQ(storage_types(keeping.strategy, Precision::kF32).product_weights, DType::kF32);
  const Backend& cpu = *backends().front();
  std::vector<std::unique_ptr<Device>> devices;
  devices.push_back(std::make_unique<CountingDevice>(cpu.open(0, "gpu:0", 2), DType::kBF16));
  devices.push_back(std::make_unique<CountingDevice>(cpu.open(0, "gpu:1", 2), DType::kF32));
  DeviceGroup group(std::move(devices));
  const Strategy mixed(group, {.announce = false});
  EXPECT_EQ(storage_types(mixed, Precision::kBF16).product_weights, DType::kF32);
  EXPECT_EQ(storage_types(mixed, Precision::kBF16).activations, DType::kBF16);
}

// Images of bytes: f32 ones that the host makes are rounded by a kernel of the step, those that the device makes
// when they are made.
TEST(HalfImages, ComeRoundedFromTheDeviceThatMakesThem) {
  std::vector<std::uint8_t> pixels(60 * 72);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * i % 251);
  std::vector<std::int64_t> labels(60);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int64_t>(i % 4);
  const Dataset data =
      Dataset::from(
          in_memory("bytes", 60, {array_of("image", Shape{6, 6, 2}, pixels), array_of("label", Shape{}, labels)}))
          .map(pad_crop(6, 1) | flip() | normalize({0.5F, 0.4F}, {0.2F, 0.3F}))
          .batch({.global_batch = 15});
  struct Outcome {
    std::string weights;
    std::vector<double> validated;
    int conversions;
  };
  const auto trained = [&](ConvertAt at) -> Outcome {
    Counting counting(DType::kBF16);
    Model model = counting.strategy.build(net_of_products, {.seed = 3});
    model.compile({.optimizer = adam(1e-2F), .precision = Precision::kBF16});
    const History history =
        model.fit(data, {.epochs = 2, .validation = data, .verbose = 0, .input = {.convert = at}});
    return {model.weights_sha256(), history["val_loss"], counting.kernels().counts.others};
  };
  const Outcome device = trained(ConvertAt::kDevice), host = trained(ConvertAt::kHost);
  EXPECT_EQ(device.weights, host.weights);
  EXPECT_EQ(device.validated, host.validated);
  EXPECT_EQ(host.conversions - device.conversions, 16) << "one a batch of four, twice, trained on and validated";
}

TEST(HalfImages, AreF32WhereTheNetStoresThemSo) {
  Counting counting(DType::kBF16);
  Model direct = counting.strategy.build(
      [](Graph& g) {
        return g.global_average_pool(g.conv(g.input("image", {6, 6, 2}), 4));
      },
      {.seed = 3});
  direct.compile({.precision = Precision::kBF16});
  EXPECT_EQ(converted_type(direct.state(), Mode::kTrain), DType::kF32);
  Model dense = counting.strategy.build(net_of_products, {.seed = 3});
  EXPECT_EQ(converted_type(dense.state(), Mode::kPredict), DType::kF32) << "not compiled: f32";
  dense.compile({.precision = Precision::kBF16});
  EXPECT_EQ(converted_type(dense.state(), Mode::kTrain), DType::kBF16);
}

// The budget of a step of recipe cifar10-fast. What is left are the weight gradients of six convolutions, and the
// gradient of the logits, which is f32 and read twice.
TEST(HalfWeights, AStepOfTheFastRecipeConvertsEightTensors) {
  const auto counts = [](DType weights) {
    Counting counting(weights);
    Model model = counting.strategy.build([](Graph& g) { return cifar10_speed_net(g); }, {.seed = 3});
    model.compile({.optimizer = adam(), .precision = Precision::kBF16});
    const Dataset data = blobs(8, {32, 32, 3}).batch({.global_batch = 4});
    Loader loader(data, counting.devices);
    counting.kernels().counts = {};
    const Trainer trainer(counting.strategy, model, loader);  // records the step
    return counting.kernels().counts;
  };
  EXPECT_EQ(counts(DType::kBF16), (CountingKernels::Counts{.weights = 0, .others = 8}));
  EXPECT_EQ(counts(DType::kF32), (CountingKernels::Counts{.weights = 15, .others = 8}))
      << "what is counted does not depend on what the device wants";
}

// Training with activations stored in bf16: on CPU replicas, on ones that compute as a GPU does (twin_kernels.h)
// and on the test devices.

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
