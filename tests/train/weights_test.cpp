// Weights of examples and of classes: in the loss, its gradients and the metrics, as Keras defines them, whatever
// the replicas.
#include "headrace/tests/support/reference.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/checkpoints.h"

namespace headrace::test {
namespace {

constexpr std::int64_t kWeighedCount = 53;
constexpr std::size_t kWeighedClasses = 4;
const std::vector<float> kClassWeights{1, 5, 0.5F, 0};

struct WeightedData {
  std::vector<float> images, weights;
  std::vector<std::int64_t> numbers;

  WeightedData() {
    Philox random({.seed = 6});
    for (std::int64_t i = 0; i < kWeighedCount; ++i) {
      numbers.push_back(random.below(kWeighedClasses));
      weights.push_back(i % 7 == 0 ? 0.0F : 3 * random.uniform());
      for (int k = 0; k < 8; ++k) images.push_back(random.uniform() + (k == numbers.back() ? 0.4F : 0.0F));
    }
  }
  Dataset dataset(const std::vector<float>& given, std::int64_t batch = 7) const {
    return Dataset::from(in_memory("weighted", numbers.size(),
                                   {array_of("image", Shape{8}, images), array_of("label", Shape{}, numbers),
                                    array_of("weight", Shape{}, given)}))
        .batch({.global_batch = batch});
  }
  Dataset dataset(std::int64_t batch = 7) const { return dataset(weights, batch); }
  // The weights of the classes, times those of the examples if wanted.
  std::vector<float> of_classes(bool times_own) const {
    std::vector<float> products;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      products.push_back(kClassWeights[static_cast<std::size_t>(numbers[i])] * (times_own ? weights[i] : 1.0F));
    }
    return products;
  }
};

Loss weighted_loss() { return sparse_categorical_crossentropy().weighted_by("weight"); }

Model compiled_with(Training& training, const Loss& loss, const std::vector<Metric>& metrics = {}) {
  Model model = training.strategy.build(small_mlp, {.seed = 3});
  model.compile({.optimizer = sgd(0.1F, {.momentum = 0.9F}), .loss = loss, .metrics = metrics});
  return model;
}

// sum(weight loss) / examples, as in Keras; a weighted metric: sum(weight value) / sum(weight).
TEST(Weights, AreInTheMeanAndInWeightedMetrics) {
  const WeightedData data;
  for (const int replicas : {1, 2, 4}) {
    Training training(replicas);
    Model model =
        compiled_with(training, weighted_loss(),
                      {accuracy(), accuracy().weighted(), Metric(sparse_categorical_crossentropy()).weighted()});
    const Evaluation seen = model.evaluate(data.dataset());
    const Predictions all = model.predict(data.dataset());
    double loss = 0, weight = 0, hits = 0, weighted_hits = 0;
    for (std::size_t i = 0; i < data.numbers.size(); ++i) {
      const Reals logits(&all.values[i * kWeighedClasses], &all.values[i * kWeighedClasses] + kWeighedClasses);
      const auto label = static_cast<std::size_t>(data.numbers[i]);
      const bool hit = std::ranges::max_element(logits) - logits.begin() == data.numbers[i];
      const auto mine = static_cast<double>(data.weights[i]);
      loss += mine * cross_entropy(logits, label, 0);
      weight += mine;
      hits += hit ? 1 : 0;
      weighted_hits += hit ? mine : 0;
    }
    EXPECT_NEAR(seen.loss, loss / kWeighedCount, 1e-6);
    EXPECT_EQ(find_metric(seen.metrics, "accuracy")->number(), hits / kWeighedCount);
    EXPECT_NEAR(find_metric(seen.metrics, "weighted_accuracy")->number(), weighted_hits / weight, 1e-12);
    EXPECT_NEAR(find_metric(seen.metrics, "weighted_sparse_categorical_crossentropy")->number(), loss / weight,
                1e-6);
  }
}

std::string weights_after_fit(Training& training, const Dataset& data, const Loss& loss,
                              const FitOptions& given = {}) {
  Model model = compiled_with(training, loss);
  FitOptions options = given;
  options.epochs = 2;
  options.verbose = 0;
  model.fit(data, options);
  return model.weights_sha256();
}

// A weight of 1 changes no bit; class weights are the same as their products given by example; a weight of 0 is
// the same as a record that teaches nothing.
TEST(Weights, TeachTheSameBitsHoweverTheyAreGiven) {
  const WeightedData data;
  for (const int replicas : {1, 2}) {
    Training training(replicas);
    const Loss plain = sparse_categorical_crossentropy();
    const std::vector<float> ones(data.numbers.size(), 1.0F);
    EXPECT_EQ(weights_after_fit(training, data.dataset(ones), weighted_loss()),
              weights_after_fit(training, data.dataset(), plain));
    EXPECT_EQ(weights_after_fit(training, data.dataset(), plain.class_weighted({1, 1, 1, 1})),
              weights_after_fit(training, data.dataset(), plain));
    const std::string by_class =
        weights_after_fit(training, data.dataset(), plain, {.class_weight = kClassWeights});
    EXPECT_EQ(by_class, weights_after_fit(training, data.dataset(data.of_classes(false)), weighted_loss()));
    EXPECT_EQ(by_class, weights_after_fit(training, data.dataset(), plain.class_weighted(kClassWeights)));
    EXPECT_NE(by_class, weights_after_fit(training, data.dataset(), plain));
    EXPECT_EQ(weights_after_fit(training, data.dataset(), weighted_loss(), {.class_weight = kClassWeights}),
              weights_after_fit(training, data.dataset(data.of_classes(true)), weighted_loss()));
  }
}

// With virtual shards and accumulation, for any number of replicas.
TEST(Weights, ChangeNothingAboutReplicasAndAccumulation) {
  const WeightedData data;
  std::vector<std::string> weights;
  for (const int replicas : {1, 2, 4}) {
    Training training(replicas);
    weights.push_back(
        weights_after_fit(training, data.dataset(8), weighted_loss(),
                          {.step = {.accumulate = 2, .virtual_shards = 4}, .class_weight = kClassWeights}));
    EXPECT_EQ(weights.back(), weights.front()) << replicas;
  }
  Training training(1);
  const auto variables = [&](std::int64_t batch, int accumulate) {
    Model model = compiled_with(training, weighted_loss());
    model.fit(data.dataset(batch),
              {.verbose = 0, .step = {.accumulate = accumulate}, .class_weight = kClassWeights});
    return variables_of(model);
  };
  const auto whole = variables(16, 1), parts = variables(4, 4);
  for (std::size_t v = 0; v < whole.size(); ++v) {
    for (std::size_t i = 0; i < whole[v].size(); ++i) ASSERT_NEAR(whole[v][i], parts[v][i], 2e-6);
  }
}

// As in Keras: classes have weights in training, and not in an evaluation or the next fit.
TEST(Weights, OfClassesCountInOneFitsTrainingOnly) {
  const WeightedData data;
  Training training(2);
  const Dataset all = data.dataset();
  Model model = training.strategy.build(small_mlp, {.seed = 3});
  model.compile({.optimizer = sgd(0.0F), .metrics = {accuracy().weighted()}});
  const History history = model.fit(all, {.validation = all, .verbose = 0, .class_weight = kClassWeights});
  const Evaluation plain = model.evaluate(all);
  EXPECT_EQ(history["val_loss"][0], plain.loss);
  EXPECT_EQ(history["val_weighted_accuracy"][0], plain.accuracy);
  EXPECT_EQ(history["loss"][0],
            compiled_with(training, weighted_loss()).evaluate(data.dataset(data.of_classes(false))).loss);
  EXPECT_NE(history["weighted_accuracy"][0], plain.accuracy);
  EXPECT_EQ(model.fit(all, {.verbose = 0})["loss"][0], plain.loss);
}

TEST(Weights, AreInCheckpointsAndAResumptionNamesOthers) {
  const WeightedData data;
  const TempFolder folder;
  Training training(1);
  const Loss loss = weighted_loss();
  const auto fit = [&](Model& model, std::vector<float> classes, int epochs, bool resume) {
    model.fit(data.dataset(), {.epochs = epochs,
                               .verbose = 0,
                               .class_weight = std::move(classes),
                               .checkpoints = CheckpointOptions{.folder = folder.path(), .name = "{epoch}"},
                               .resume = resume});
  };
  Model model = compiled_with(training, loss, {accuracy().weighted()});
  fit(model, kClassWeights, 2, false);
  Model again = restore_model(training.strategy, *newest_checkpoint(folder.path()));
  EXPECT_EQ(again.evaluate(data.dataset()).loss, model.evaluate(data.dataset()).loss);
  EXPECT_NE(find_metric(again.evaluate(data.dataset()).metrics, "weighted_accuracy"), nullptr);
  Model other = compiled_with(training, loss, {accuracy().weighted()});
  EXPECT_THAT(error_of<ConfigError>([&] {
                fit(other, {1, 1, 1, 1}, 3, true);
              }).what(),
              HasSubstr("loss.terms[0].class_weights"));
  Model resumed = compiled_with(training, loss, {accuracy().weighted()});
  fit(resumed, kClassWeights, 3, true);
  EXPECT_EQ(resumed.global_step(), 3 * model.global_step() / 2);
}

TEST(Weights, AreRefusedWhereTheyDoNotFit) {
  const WeightedData data;
  Training training(1);
  const Loss plain = sparse_categorical_crossentropy();
  const auto expect_refused = [&](const Loss& loss, const FitOptions& options, const std::string& why) {
    EXPECT_THAT(error_of<ConfigError>([&] { weights_after_fit(training, data.dataset(), loss, options); }).what(),
                HasSubstr(why));
  };
  expect_refused(plain, {.class_weight = {1, 2}}, "2 class weights");
  expect_refused(plain.weighted_by("label"), {}, "a weight is one float32");
  expect_refused(plain.weighted_by("elsewhere"), {}, "elsewhere");
  expect_refused(plain + plain, {.class_weight = kClassWeights}, "several terms");
  EXPECT_THROW(plain.class_weighted({1, -1}), ConfigError);
  EXPECT_THROW(confusion_matrix().weighted(), ConfigError);
}

// A custom loss on the host, against the same on the device.
TEST(Weights, AreThoseOfALossOnTheHostToo) {
  const WeightedData data;
  Training training(2);
  const Dataset all =
      Dataset::from(in_memory("weighted", data.numbers.size(),
                              {array_of("image", Shape{8}, data.images), array_of("label", Shape{8}, data.images),
                               array_of("weight", Shape{}, data.weights)}))
          .batch({.global_batch = 7});
  const Loss squares = host_loss("squares", [](const HostExample& example) {
    double sum = 0;
    for (std::size_t i = 0; i < example.result.size(); ++i) {
      const float error = example.result[i] - example.labels[i];
      sum += static_cast<double>(error * error) / 8;
      if (!example.gradient.empty()) example.gradient[i] = error / 4;
    }
    return sum;
  });
  std::vector<std::vector<std::vector<float>>> variables;
  std::vector<double> losses;
  for (const Loss& loss : {squares, mean_squared_error()}) {
    Model model = training.strategy.build([](Graph& g) { return g.dense(g.input("image", {8}), 8); }, {.seed = 3});
    model.compile({.optimizer = sgd(0.1F), .loss = loss.weighted_by("weight"), .metrics = {}});
    losses.push_back(model.fit(all, {.epochs = 3, .verbose = 0})["loss"].back());
    variables.push_back(variables_of(model));
  }
  EXPECT_NEAR(losses[0], losses[1], 1e-6);
  for (std::size_t v = 0; v < variables[0].size(); ++v) {
    for (std::size_t i = 0; i < variables[0][v].size(); ++i)
      ASSERT_NEAR(variables[0][v][i], variables[1][v][i], 1e-6);
  }
}

}  // namespace
}  // namespace headrace::test
