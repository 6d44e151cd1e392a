// Layers and update rules of users.
#include "headrace/tests/train/user_rule.h"
#include "headrace/tests/train/gradient_fixture.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/tests/train/user_layer.h"
#include "headrace/train/graph.h"
#include "headrace/train/trainer.h"
#include "headrace/train/training_record.h"

namespace headrace::test {
namespace {

// A user's update rule is one like the library's own: it is chosen for groups, written down, saved and continued,
// and gives one result on any number of replicas. That it follows its formula is in optimizer_steps_test.cpp.

// One's own rules for some variables, and one of the library's for the others.
Optimizer with_own_groups() {
  Optimizer optimizer = adam(1e-2F);
  optimizer.groups = {{.takes = VariableRule::named("conv/weights"),
                       .rule = std::make_shared<Lion>(),
                       .learning_rate = Schedule::linear_decay({.peak = 1e-2F, .total_steps = 30})},
                      {.takes = VariableRule::named("dense/weights"), .rule = rmsprop(), .learning_rate = 1e-3F},
                      {.takes = VariableRule::named("dense/bias"),
                       .rule = std::make_shared<LimitedDescent>(0.05F),
                       .learning_rate = 0.1F}};
  return optimizer;
}

const UpdateMakers& own_makers() {
  static const UpdateMakers makers{
      {"lion", Lion::from},
      {"rmsprop",
       [](const Attributes& of) {
         return rmsprop(of.number("alpha"), of.number("momentum"), of.number("epsilon"));
       }},
      {"limited_descent",
       [](const Attributes& of) { return std::make_shared<LimitedDescent>(of.number("max_norm")); }}};
  return makers;
}

TEST(UserRule, KeepsItsStateUnderItsOwnNames) {
  Training training(2);
  Model model = compiled(training.strategy, small_cnn, with_own_groups());
  EXPECT_THAT(model.optimizer_variable_names(),
              ElementsAre("conv/weights:momentum", "conv/bias:first_moment", "conv/bias:second_moment",
                          "dense/weights:squares", "dense/weights:buffer"));
  model.fit(loop_data(), {.verbose = 0});
  for (const std::string& name : model.optimizer_variable_names()) {
    const std::vector<float> values = model.read_variable(name);
    EXPECT_NE(values, std::vector<float>(values.size())) << name;
    EXPECT_EQ(values, model.read_variable(name, 1)) << name;
  }
  model.check_mirrored();
}

TEST(UserRule, GivesOneResultOnAnyNumberOfReplicas) {
  std::vector<std::string> weights;
  for (const int replicas : {1, 2, 4}) {
    Training training(replicas);
    Model model = compiled(training.strategy, small_cnn, with_all_around(with_own_groups()));
    model.fit(loop_data(), {.epochs = 3, .verbose = 0, .step = {.accumulate = 2, .virtual_shards = 4}});
    model.check_mirrored();
    weights.push_back(model.weights_sha256());
  }
  EXPECT_EQ(weights[0], weights[1]);
  EXPECT_EQ(weights[0], weights[2]);
}

// Each slice is updated as soon as it is summed; the copies that products read follow.
TEST(UserRule, DoesNotDependOnTheBucketsAndKeepsBf16CopiesUpToDate) {
  for (const Precision precision : {Precision::kF32, Precision::kBF16}) {
    std::vector<std::string> weights;
    for (const std::int64_t bytes : {64, 1 << 20}) {
      Training training(2);
      Model model = training.strategy.build(small_cnn, {.seed = 3});
      model.compile({.optimizer = with_own_groups(), .precision = precision});
      Loader loader(loop_data(), training.devices);
      Trainer trainer(training.strategy, model, loader, {.buckets = {.bucket_bytes = bytes}});
      trainer.warm_up();
      while (trainer.step()) {
      }
      trainer.finish();
      model.check_mirrored();
      weights.push_back(model.weights_sha256());
    }
    EXPECT_EQ(weights[0], weights[1]);
  }
}

TEST(UserRule, FrozenVariablesAndARateOfZeroStayAsTheyAre) {
  Training training(2);
  Model model = training.strategy.build(small_cnn, {.seed = 3});
  model.freeze("conv/weights");
  Optimizer optimizer = with_own_groups();
  optimizer.groups[1].learning_rate = 0;
  model.compile({.optimizer = optimizer});
  const auto before = variables_of(model);
  model.fit(loop_data(), {.verbose = 0});
  const auto after = variables_of(model);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const std::string name = model.variable_names()[i];
    EXPECT_EQ(before[i] == after[i], name.ends_with("weights")) << name;
  }
}

TEST(UserRule, GoesThroughJson) {
  const Optimizer optimizer = with_own_groups();
  const std::string json = to_json(optimizer);
  const Optimizer read = optimizer_from_json(json, own_makers());
  EXPECT_TRUE(read == optimizer) << json;
  EXPECT_EQ(to_json(read), json);
  EXPECT_EQ(Optimizer{.rule = std::make_shared<Lion>()}.name(), "lion");
  EXPECT_FALSE(Optimizer{.rule = std::make_shared<Lion>()} == Optimizer{.rule = std::make_shared<Lion>(0.8F)});
  EXPECT_THAT(message_of([&] { optimizer_from_json(json); }),
              AllOf(HasSubstr("groups[0].rule"), HasSubstr("'lion'"), HasSubstr("hand over")));
  EXPECT_THAT(message_of([] { optimizer_from_json(R"({"rule": {"lion": {"beta1": 0.9}}})", own_makers()); }),
              AllOf(HasSubstr("rule.lion"), HasSubstr("there is no attribute")));
}

// Stopped within an epoch and continued by another program, which makes the rules again from the file.
TEST(UserRule, ContinuesFromACheckpointWithTheSameBits) {
  const Dataset data = blobs(64, {6, 6, 2}).shuffle().batch({.global_batch = 8});
  const auto build = [](Training& training) { return compiled(training.strategy, small_cnn, with_own_groups()); };
  Training straight(2);
  Model whole = build(straight);
  whole.fit(data, {.epochs = 3, .verbose = 0});
  const TempFolder folder;
  const auto fit = [&](Model& model, std::uint64_t stop) {
    return model.fit(data, {.epochs = 3,
                            .verbose = 0,
                            .stop_after_steps = stop,
                            .checkpoints = CheckpointOptions{.folder = folder.path()},
                            .resume = true});
  };
  Training first(2), other(2);
  Model begun = build(first);
  fit(begun, 11);
  const auto file = newest_checkpoint(folder.path());
  ASSERT_TRUE(file);
  const DataError error = error_of<DataError>([&] { restore_model(other.strategy, *file); });
  EXPECT_EQ(error.location().source, file->string());
  EXPECT_THAT(error.what(), HasSubstr("'lion'"));
  Model continued = restore_model(other.strategy, *file, {.rules = own_makers()});
  for (const std::string& name : begun.optimizer_variable_names()) {
    EXPECT_EQ(continued.read_variable(name), begun.read_variable(name)) << name;
  }
  fit(continued, 0);
  EXPECT_EQ(continued.weights_sha256(), whole.weights_sha256());
  for (const std::string& name : whole.optimizer_variable_names()) {
    EXPECT_EQ(continued.read_variable(name), whole.read_variable(name)) << name;
  }
}

// Nothing is updated then: whoever evaluates a record needs no rule.
TEST(UserRule, IsNotNeededToEvaluateARecord) {
  const TempFolder folder;
  Training training(2), other(1);
  Model model = compiled(training.strategy, small_cnn, with_own_groups());
  const SourcePtr source = in_memory("ones", 4,
                                     {array_of("image", Shape{6, 6, 2}, std::vector<float>(4 * 72, 1.0F)),
                                      array_of("label", Shape{}, std::vector<std::int64_t>{0, 1, 2, 3})});
  save_model(model, folder / "net.safetensors", Dataset::from(source).batch({.global_batch = 4}));
  const Evaluation elsewhere = evaluate_record(other.strategy, folder / "net.safetensors", source);
  EXPECT_NEAR(elsewhere.loss, model.evaluate(Dataset::from(source).batch({.global_batch = 4})).loss, 1e-6);
}

// A rule that is for matrices alone.
class Picky final : public UpdateFunction {
 public:
  explicit Picky(std::string name = "picky", std::vector<std::string> state = {})
      : name_(std::move(name)), state_(std::move(state)) {}
  std::string name() const override { return name_; }
  std::vector<std::string> state() const override { return state_; }
  void check_variable(const TrainedVariable& variable) const override {
    if (variable.shape.rank() < 2) throw ConfigError("picky is for matrices, not for '" + variable.name + "'");
  }
  void submit(const UpdateCall&) const override {}

 private:
  std::string name_;
  std::vector<std::string> state_;
};

TEST(UserRule, OfTheHostMayTakeWholeVariables) {
  for (const UpdateScope scope : {UpdateScope::kElements, UpdateScope::kVariable}) {
    Training training(1);
    std::mutex mutex;
    std::set<std::string> shapes;
    const auto rule = host_rule(
        "shapes", {"kept"},
        [&](const HostUpdate& update) {
          EXPECT_EQ(static_cast<std::int64_t>(update.parameters.size()), update.shape.elements());
          EXPECT_EQ(update.state.at(0).size(), update.parameters.size());
          const std::lock_guard lock(mutex);
          shapes.insert(update.shape.to_string());
        },
        {}, scope);
    Model model = compiled(training.strategy, small_mlp, {.rule = rule, .learning_rate = 0.1F});
    model.fit(blobs(64).batch({.global_batch = 8}), {.verbose = 0});
    if (scope == UpdateScope::kVariable) {
      EXPECT_THAT(shapes, ElementsAre("(16, 8)", "(16,)", "(4, 16)", "(4,)"));
    } else {
      for (const std::string& shape : shapes) EXPECT_EQ(shape.find(", "), std::string::npos) << "runs are flat";
    }
  }
}

TEST(UserRule, RefusesWhatCannotBe) {
  Training training(1);
  const auto refusal = [&](const CustomRule& rule) {
    Optimizer optimizer = adam();
    optimizer.groups = {{.takes = VariableRule::named("*"), .rule = rule}};
    return message_of([&] { compiled(training.strategy, small_mlp, optimizer); });
  };
  EXPECT_THAT(refusal({}), HasSubstr("no function"));
  EXPECT_THAT(refusal(std::make_shared<Picky>("adam")), HasSubstr("'adam'"));
  EXPECT_THAT(refusal(std::make_shared<Picky>("own", std::vector<std::string>{"m", "m"})), HasSubstr("'m'"));
  EXPECT_THAT(refusal(std::make_shared<Picky>("own", std::vector<std::string>{"slow"})), HasSubstr("'slow'"));
  EXPECT_THAT(refusal(std::make_shared<Picky>()), HasSubstr("not for 'dense_1/bias'"));
  EXPECT_THROW(host_rule("none", {}, {}), ConfigError);
}

TEST(UserRule, AnExceptionEndsTheRunWithItsStep) {
  Training training(2);
  std::atomic<bool> thrown{false};  // by one replica: the other one's collective is then aborted
  const auto broken = host_rule("broken", {}, [&](const HostUpdate& update) {
    if (update.step == 2 && !thrown.exchange(true)) throw std::runtime_error("out of luck");
  });
  Model model = compiled(training.strategy, small_mlp, {.rule = broken, .learning_rate = 0.1F});
  EXPECT_THAT(error_of([&] { model.fit(blobs(64).batch({.global_batch = 8}), {.verbose = 0}); }).what(),
              HasSubstr("out of luck"));
}

// A user's layer is trained, written and read like the tree's own.

Node stepped(Graph& g) {
  const Node x = g.dense(g.input("image", {8}), 6);
  const Node y = g.call(std::make_shared<ResidualStep>("step", g.shape(x), 0.5F), {x});
  return g.dense(y, 4);
}

TEST(UserLayer, HasTheGradientsOfItsDifferences) { expect_gradients_equal_differences({"user", stepped, {8}}); }

TEST(UserLayer, CalledAgainSharesItsVariables) {
  const Net twice = [](Graph& g) {
    const Node x = g.dense(g.input("image", {8}), 6);
    const auto step = std::make_shared<ResidualStep>("step", g.shape(x), 0.5F);
    return g.dense(g.call(step, {g.relu(g.call(step, {x}))}, {.name = "second"}), 4);
  };
  expect_gradients_equal_differences({"user_twice", twice, {8}});
  Training training(1);
  const Model model = training.strategy.build(twice);
  EXPECT_THAT(model.variable_names(), ElementsAre("dense/weights", "dense/bias", "step/weights", "step/bias",
                                                  "dense_1/weights", "dense_1/bias"));
  EXPECT_EQ(model.parameter_count(), 8 * 6 + 6 + 6 * 6 + 6 + 6 * 4 + 4);
}

TEST(UserLayer, LearnsOnSeveralReplicasInBothPrecisions) {
  for (const Precision precision : {Precision::kF32, Precision::kBF16}) {
    Training training(2);
    Model model = training.strategy.build(stepped, {.seed = 3});
    model.compile({.optimizer = adam(1e-2F), .precision = precision});
    const History history = model.fit(blobs(64).batch({.global_batch = 16}), {.epochs = 8, .verbose = 0});
    EXPECT_LT(history["loss"].back(), 0.3 * history["loss"].front());
    model.check_mirrored();
  }
}

TEST(UserLayer, IsMadeAgainByTheMakerThatIsHandedOver) {
  Training training(1);
  Model model = training.strategy.build(stepped, {.seed = 3});
  const std::string text = to_json(model.graph());
  Model same = training.strategy.build(net_from_json(text, {{"residual_step", ResidualStep::from}}), {.seed = 3});
  const Dataset data = blobs(6).batch({.global_batch = 4});
  EXPECT_EQ(same.predict(data).values, model.predict(data).values);
  EXPECT_EQ(to_json(same.graph()), text);
  EXPECT_THAT(error_of<ConfigError>([&] { graph_from_json(text); }).what(),
              AllOf(HasSubstr("'step'"), HasSubstr("'residual_step'"), HasSubstr("hand over")));
}

TEST(UserLayer, NeedsANameAndALayer) {
  Graph g;
  const Node x = g.input("image", {8});
  EXPECT_THROW(g.call(std::shared_ptr<const Layer>(), {x}), ConfigError);
  g.call(std::make_shared<ResidualStep>("step", Shape{8}, 1.0F), {x});
  EXPECT_THROW(g.call(std::make_shared<ResidualStep>("step", Shape{8}, 1.0F), {x}), ConfigError);
}

}  // namespace
}  // namespace headrace::test
