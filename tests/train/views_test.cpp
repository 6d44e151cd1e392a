#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/evaluator.h"

namespace headrace::test {
namespace {

constexpr std::int64_t kSide = 4, kChannels = 2;

std::vector<float> shifted(const std::vector<float>& images, const ImageShift& shift) {
  const auto reflect = [](std::int64_t at) { return at < 0 ? -at : at < kSide ? at : 2 * (kSide - 1) - at; };
  std::vector<float> result;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(images.size()); ++i) {
    const std::int64_t c = i % kChannels, column = i / kChannels % kSide, row = i / kChannels / kSide % kSide;
    const std::int64_t right = reflect((shift.mirror ? kSide - 1 - column : column) + shift.right);
    const std::int64_t from = (reflect(row + shift.down) * kSide + right) * kChannels + c;
    result.push_back(
        images[static_cast<std::size_t>(i / (kSide * kSide * kChannels) * kSide * kSide * kChannels + from)]);
  }
  return result;
}

Node views_net(Graph& g) {
  return g.dense(
      g.flatten(g.conv(g.input("image", {kSide, kSide, kChannels}), 3, {.activation = Activation::kGelu})), 4);
}

// The mean loss and accuracy of the weighted sum of what predict() gives for each view.
Evaluation by_hand(Model& model, const std::vector<float>& images, const std::vector<std::int64_t>& labels,
                   const std::vector<View>& views) {
  std::vector<double> logits(labels.size() * 4);
  for (const View& view : views) {
    const Dataset moved = labelled({kSide, kSide, kChannels}, shifted(images, view.shift), labels);
    const Predictions predictions = model.predict(moved.batch({.global_batch = 5}));
    for (std::size_t i = 0; i < logits.size(); ++i) {
      logits[i] += static_cast<double>(view.weight) * static_cast<double>(predictions.values[i]);
    }
  }
  Evaluation result;
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const double* z = logits.data() + row * 4;
    double sum = 0;
    for (int k = 0; k < 4; ++k) sum += std::exp(z[k]);
    result.loss += (std::log(sum) - z[labels[row]]) / static_cast<double>(labels.size());
    const bool correct = std::max_element(z, z + 4) - z == labels[row];
    result.accuracy += correct ? 1.0 / static_cast<double>(labels.size()) : 0;
  }
  return result;
}

TEST(Views, EvaluateTheWeightedSumOfLogits) {
  constexpr std::int64_t kViewed = 13;
  std::vector<float> images;
  std::vector<std::int64_t> labels;
  Philox random({.seed = 9});
  for (std::int64_t i = 0; i < kViewed * kSide * kSide * kChannels; ++i) images.push_back(random.uniform() - 0.5F);
  for (std::int64_t i = 0; i < kViewed; ++i) labels.push_back(i % 4);
  Training training;
  Model model = compiled(training.strategy, views_net);
  const Dataset data = labelled({kSide, kSide, kChannels}, images, labels).batch({.global_batch = 5});
  for (const std::vector<View>& views :
       {mirrored_views(), mirrored_and_shifted_views(), mirrored_and_shifted_views(3), {View{.weight = 2}}}) {
    const Evaluation seen = model.evaluate(data, {.views = views});
    const Evaluation expected = by_hand(model, images, labels, views);
    EXPECT_NEAR(seen.loss, expected.loss, 1e-5 * slack());
    EXPECT_NEAR(seen.accuracy, expected.accuracy, 1e-9);
    EXPECT_EQ(seen.examples, kViewed);
  }
}

// Each result is what a net of it alone makes of the views; of a softmax that the loss leaves out, the logits.
TEST(Views, AreSummedForEachOfSeveralResults) {
  const Net two_heads = [](Graph& g) -> Results {
    const Node x = g.flatten(g.conv(g.input("image", {6, 6, 2}), 3, {.activation = Activation::kGelu}));
    return {g.dense(x, 4, {.name = "left"}), g.softmax(g.dense(x, 4, {.name = "logits"}), {.name = "right"})};
  };
  const Loss left = sparse_categorical_crossentropy(),
             right = sparse_categorical_crossentropy({.from_logits = false});
  const Dataset data = blobs(11, {6, 6, 2}).batch({.global_batch = 4});
  const EvaluateOptions options{.views = mirrored_and_shifted_views()};
  for (const int replicas : {1, 2, 4}) {
    Training training(replicas);
    Model both = training.strategy.build(two_heads, {.seed = 3});
    both.compile({.loss = left + 0.5F * right.of("right"), .metrics = {accuracy(), accuracy().of("right")}});
    const Evaluation seen = both.evaluate(data, options);
    const auto alone = [&](const std::string& head, const Loss& loss) {
      Model one = training.strategy.build(net_of(both.graph(), {head}), {.seed = 4});
      one.copy_variables(both);
      one.compile({.loss = loss});
      return one.evaluate(data, options);
    };
    const Evaluation of_left = alone("left", left), of_right = alone("right", right);
    EXPECT_NEAR(find_metric(seen.metrics, "left_loss")->number(), of_left.loss, 1e-6 * slack());
    EXPECT_NEAR(find_metric(seen.metrics, "right_loss")->number(), of_right.loss, 1e-6 * slack());
    EXPECT_EQ(find_metric(seen.metrics, "accuracy")->number(), of_left.accuracy);
    EXPECT_EQ(find_metric(seen.metrics, "right/accuracy")->number(), of_right.accuracy);
    EXPECT_NEAR(seen.loss, of_left.loss + 0.5 * of_right.loss, 1e-6 * slack());
    EXPECT_NE(seen.loss, both.evaluate(data).loss);
  }
}

TEST(Views, WeighOneInAll) {
  for (const auto& views : {mirrored_views(), mirrored_and_shifted_views()}) {
    float sum = 0;
    for (const View& view : views) sum += view.weight;
    EXPECT_EQ(sum, 1.0F);
  }
  EXPECT_EQ(mirrored_and_shifted_views().size(), 6U);
}

TEST(Views, AreRefusedWhereThereIsNothingToMove) {
  Training training;
  Model flat = compiled(training.strategy, small_mlp);
  const Dataset vectors = blobs(6).batch({.global_batch = 3});
  EXPECT_THROW(flat.evaluate(vectors, {.views = mirrored_views()}), ConfigError);
  Model images = compiled(training.strategy, small_cnn);
  const Dataset data = blobs(6, {6, 6, 2}).batch({.global_batch = 3});
  EXPECT_THROW(images.evaluate(data, {.views = mirrored_and_shifted_views(6)}), ConfigError);
  EXPECT_THROW(images.predict(data, {.views = mirrored_views()}), ConfigError);
  EXPECT_EQ(images.evaluate(data, {.views = mirrored_and_shifted_views(5)}).examples, 6);
}

}  // namespace
}  // namespace headrace::test
