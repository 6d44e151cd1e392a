// one_hot, mixup and cutmix from the data set to the weights, against a hand-written softmax regression in double.
#include "headrace/pipeline/loader.h"
#include "headrace/tests/support/reference.h"
#include "headrace/tests/train/training_fixture.h"

namespace headrace::test {
namespace {

constexpr std::int64_t kPixels = 4 * 4 * 1;
constexpr std::size_t kKinds = 4;
constexpr int kPasses = 3;
constexpr double kRate = 0.2;

Dataset mixed(const Operations& mixing) {
  return blobs(53, {4, 4, 1}, kKinds).map(one_hot(kKinds)).shuffle().batch({.global_batch = 16}).map(mixing);
}

// Logits = weights x + bias, as the net below.
struct Regression {
  std::vector<Reals> weights = std::vector<Reals>(kKinds, Reals(kPixels));
  Reals bias = Reals(kKinds);
  std::vector<double> losses = {};  // of each pass
  bool blended = false;             // a label that is not 0 or 1 was seen

  // Plain gradient descent on the stream that a fit of this data sees.
  void train(const Dataset& data) {
    DeviceGroup cpu = open_devices("cpu:1");
    Loader loader(data, cpu, {.epochs = kPasses});
    double sum = 0, examples = 0;
    while (std::optional<Batch> batch = loader.next(0)) {
      batch->ready().wait();
      sum += step(*batch);
      examples += static_cast<double>(batch->examples());
      if (!batch->position().last_of_epoch) continue;
      losses.push_back(sum / examples);
      sum = examples = 0;
    }
  }

  double step(const Batch& batch) {
    std::vector<Reals> moves = weights;
    Reals bias_moves = bias;
    double loss = 0;
    for (std::int64_t row = 0; row < batch.examples(); ++row) {
      const float* x = batch.tensor("image").as<float>() + row * kPixels;
      const float* t = batch.tensor("label").as<float>() + row * static_cast<std::int64_t>(kKinds);
      Reals logits = bias;
      for (std::size_t k = 0; k < kKinds; ++k) {
        for (std::size_t i = 0; i < kPixels; ++i) logits[k] += weights[k][i] * static_cast<double>(x[i]);
      }
      const Reals p = softmax(logits), targets(t, t + kKinds);
      loss += soft_cross_entropy(logits, targets, 0);
      for (std::size_t k = 0; k < kKinds; ++k) {
        const double slope = (p[k] - targets[k]) / static_cast<double>(batch.examples());
        for (std::size_t i = 0; i < kPixels; ++i) moves[k][i] -= kRate * slope * static_cast<double>(x[i]);
        bias_moves[k] -= kRate * slope;
        blended = blended || (t[k] > 0.01F && t[k] < 0.99F);
      }
    }
    weights = moves;
    bias = bias_moves;
    return loss;
  }
};

void expect_regression(const Dataset& data, bool blends) {
  Regression expected;
  for (const int replicas : {1, 2, 3}) {
    Training training(replicas);
    Model model = training.strategy.build(
        [](Graph& g) {
          return g.dense(g.flatten(g.input("image", {4, 4, 1})), kKinds);
        },
        {.seed = 3});
    model.compile({.optimizer = sgd(static_cast<float>(kRate)), .loss = categorical_crossentropy()});
    if (replicas == 1) {
      const std::vector<float> first = model.read_variable("dense/weights");
      for (std::size_t i = 0; i < first.size(); ++i) expected.weights[i / kPixels][i % kPixels] = first[i];
      expected.train(data);
      EXPECT_EQ(expected.blended, blends);
    }
    const History history = model.fit(data, {.epochs = kPasses, .verbose = 0});
    ASSERT_EQ(expected.losses.size(), history["loss"].size());
    for (std::size_t i = 0; i < expected.losses.size(); ++i) {
      EXPECT_NEAR(history["loss"][i], expected.losses[i], 1e-5 * slack());
    }
    EXPECT_LT(history["loss"].back(), history["loss"].front()) << "it learns";
    const std::vector<float> weights = model.read_variable("dense/weights");
    for (std::size_t i = 0; i < weights.size(); ++i) {
      EXPECT_NEAR(weights[i], expected.weights[i / kPixels][i % kPixels], 1e-5 * slack());
    }
    const std::vector<float> bias = model.read_variable("dense/bias");
    for (std::size_t k = 0; k < kKinds; ++k) EXPECT_NEAR(bias[k], expected.bias[k], 1e-5 * slack());
  }
}

TEST(MixedLabels, MixupTrainsAsByHand) { expect_regression(mixed(mixup({.alpha = 1})), true); }
TEST(MixedLabels, CutmixTrainsAsByHand) { expect_regression(mixed(cutmix()), true); }
TEST(MixedLabels, OneHotTrainsAsByHand) {
  expect_regression(blobs(53, {4, 4, 1}, kKinds).map(one_hot(kKinds)).shuffle().batch({.global_batch = 16}),
                    false);
}
TEST(MixedLabels, SmoothedLabelsTrainAsByHand) {
  expect_regression(blobs(53, {4, 4, 1}, kKinds).map(one_hot(kKinds, 0.2F)).batch({.global_batch = 16}), true);
}

// Class numbers and their one-hot forms are the same training.
TEST(MixedLabels, OneHotIsTheSameAsClassNumbers) {
  Training training(2);
  const auto losses = [&](bool dense) {
    Model model = training.strategy.build(small_mlp, {.seed = 3});
    model.compile({.optimizer = adam(1e-2F)});
    if (dense) model.compile({.optimizer = adam(1e-2F), .loss = categorical_crossentropy()});
    const Dataset data = blobs(53);
    return model.fit((dense ? data.map(one_hot(4)) : data).batch({.global_batch = 16}),
                     {.epochs = 3, .verbose = 0})["loss"];
  };
  const std::vector<double> numbers = losses(false), shares = losses(true);
  for (std::size_t i = 0; i < numbers.size(); ++i) EXPECT_NEAR(numbers[i], shares[i], 1e-6 * slack());
}

}  // namespace
}  // namespace headrace::test
