// Prepared steps and views.
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/evaluator.h"

namespace headrace::test {
namespace {

// Training and evaluation prepared beforehand, and warmed up: the same results as in one go.

struct PreparedOutcome {
  std::string weights;
  std::vector<double> losses, validated;
  double test_loss = 0, test_accuracy = 0;

  bool operator==(const PreparedOutcome&) const = default;
};

enum class Way { kInOneGo, kPrepared, kWarmedUp };

// A job with everything that a warm-up could spoil: running statistics, dropout, momentum under weight decay,
// norms that are scaled, rates that end in the midst of it.
struct Job {
  int replicas = 1;
  int accumulate = 1;
  bool own_memory = false;
  Net net = norm_cnn;
  Optimizer optimizer = grouped();
  Shape shape = {6, 6, 2};
};

Node norm_dropout_cnn(Graph& g) {
  Node x = g.conv(g.input("image", {6, 6, 2}), 4, {.bias = false});
  x = g.dropout(g.relu(g.batch_norm(x, {.momentum = 0.5F})), 0.25F);
  return g.dense(g.global_average_pool(x), 4);
}

Optimizer with_ending_schedule() {
  Optimizer optimizer = grouped();
  optimizer.groups[0].learning_rate = Schedule::linear_decay({.peak = 0.05F, .total_steps = 3});
  return optimizer;
}

PreparedOutcome prepared_outcome(const Job& job, Way way) {
  Training training(job.own_memory ? own_memory_devices(job.replicas, "discrete", DeviceNeed::kKernels)
                                   : test_devices(job.replicas, DeviceNeed::kKernels));
  Model model = compiled(training.strategy, job.net, job.optimizer);
  const Dataset train = blobs(50, job.shape).shuffle().batch({.global_batch = 8});
  const Dataset held_out = blobs(20, job.shape, 4, 2).batch({.global_batch = 6});
  const FitOptions options{.epochs = 2,
                           .validation = held_out,
                           .verbose = 0,
                           .input = {.seed = 5},
                           .step = {.accumulate = job.accumulate}};
  History history;
  Evaluation evaluation;
  if (way == Way::kInOneGo) {
    history = model.fit(train, options);
    evaluation = model.evaluate(held_out, {.views = mirrored_views()});
  } else {
    PreparedFit fit(model, train, options);
    Evaluator test(model, held_out, {.views = mirrored_views()});
    if (way == Way::kWarmedUp) {
      const std::string before = model.weights_sha256();
      test.warm_up();
      fit.warm_up();
      fit.warm_up();
      EXPECT_EQ(model.weights_sha256(), before);
      EXPECT_EQ(model.global_step(), 0U);
    }
    history = fit.run();
    evaluation = test.evaluate();
  }
  model.check_mirrored();
  return {.weights = model.weights_sha256(),
          .losses = history["loss"],
          .validated = history["val_loss"],
          .test_loss = evaluation.loss,
          .test_accuracy = evaluation.accuracy};
}

TEST(Prepared, GivesTheSameBitsAsInOneGoWarmOrNot) {
  std::vector<Job> jobs;
  for (const int replicas : {1, 3}) {
    for (const int accumulate : {1, 3}) jobs.push_back({.replicas = replicas, .accumulate = accumulate});
  }
  jobs.push_back({.own_memory = true});
  jobs.push_back({.net = norm_dropout_cnn});
  jobs.push_back({.optimizer = with_ending_schedule()});
  jobs.push_back({.replicas = 2, .accumulate = 2, .optimizer = adam(1e-2F, {.weight_decay = 0.1F})});
  for (const Job& job : jobs) {
    const PreparedOutcome wanted = prepared_outcome(job, Way::kInOneGo);
    ASSERT_EQ(wanted.losses.size(), 2U);
    for (const Way way : {Way::kPrepared, Way::kWarmedUp}) {
      EXPECT_EQ(prepared_outcome(job, way), wanted)
          << job.replicas << " replicas, " << job.accumulate << " batches a step, "
          << (way == Way::kWarmedUp ? "warm" : "cold");
    }
  }
}

// Steps that were made count: a warm-up in between disturbs nothing either.
TEST(Prepared, AWarmUpBetweenTwoFitsKeepsMomentaAndStatistics) {
  std::vector<std::string> weights;
  for (const bool warm : {false, true}) {
    Training training(2);
    Model model = compiled(training.strategy, norm_dropout_cnn, grouped());
    const Dataset data = blobs(50, {6, 6, 2}).batch({.global_batch = 8});
    model.fit(data, {.verbose = 0});
    PreparedFit again(model, data, {.verbose = 0, .input = {.seed = 2}});
    if (warm) again.warm_up();
    again.run();
    weights.push_back(model.weights_sha256());
  }
  EXPECT_EQ(weights[0], weights[1]);
}

TEST(Prepared, VariablesMayBeWrittenInBetween) {
  std::vector<std::string> weights;
  for (const bool between : {false, true}) {
    Training training;
    Model model = compiled(training.strategy, small_mlp);
    const Dataset data = blobs(40).batch({.global_batch = 8});
    const std::vector<float> bias(static_cast<std::size_t>(model.variable_shape("dense/bias").elements()), 0.5F);
    std::optional<PreparedFit> fit;
    if (between) fit.emplace(model, data, FitOptions{.verbose = 0});
    if (between) fit->warm_up();
    model.write_variable("dense/bias", bias);
    if (!between) fit.emplace(model, data, FitOptions{.verbose = 0});
    fit->run();
    weights.push_back(model.weights_sha256());
  }
  EXPECT_EQ(weights[0], weights[1]);
}

TEST(Prepared, RunsOnceAndForTheModelAsItWasCompiled) {
  Training training;
  Model model = training.strategy.build(small_mlp);
  const Dataset data = blobs(40).batch({.global_batch = 8});
  EXPECT_THAT(message_of([&] { PreparedFit(model, data, {}); }), HasSubstr("needs a compiled model"));
  EXPECT_THAT(message_of([&] { Evaluator(model, data, {}); }), HasSubstr("needs a compiled model"));
  model.compile({});
  PreparedFit fit(model, data, {.verbose = 0});
  Evaluator evaluation(model, data);
  EXPECT_EQ(fit.run()["loss"].size(), 1U);
  EXPECT_EQ(evaluation.evaluate().examples, 40);
  EXPECT_THAT(message_of([&] { fit.run(); }), HasSubstr("this fit has been run"));
  EXPECT_THAT(message_of([&] { evaluation.evaluate(); }), HasSubstr("this evaluation has been run"));
  PreparedFit old_fit(model, data, {.verbose = 0});
  Evaluator old_evaluation(model, data);
  model.compile({});
  EXPECT_THAT(message_of([&] { old_fit.run(); }), HasSubstr("compiled since this fit was prepared"));
  EXPECT_THAT(message_of([&] { old_evaluation.evaluate(); }),
              HasSubstr("compiled since this evaluation was prepared"));
  EXPECT_THAT(message_of([&] { old_fit.warm_up(); }), HasSubstr("compiled since"));
}

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
