// Training and evaluation prepared beforehand, and warmed up: the same results as in one go.
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/evaluator.h"

namespace headrace::test {
namespace {

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

}  // namespace
}  // namespace headrace::test
