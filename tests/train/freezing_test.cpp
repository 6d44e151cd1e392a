// What is frozen keeps its bits and costs no backward pass; it learns again when it is unfrozen.
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/step/program.h"
#include "headrace/train/step/update_plan.h"
#include "headrace/train/trainer.h"

namespace headrace::test {
namespace {

Node three_layers(Graph& g) {
  Node x = g.dense(g.input("image", {8}), 6, {.activation = Activation::kRelu, .name = "first"});
  x = g.dense(x, 6, {.activation = Activation::kRelu, .name = "second"});
  return g.dense(x, 4, {.name = "head"});
}

Node normed(Graph& g) {
  const Node x = g.relu(g.batch_norm(g.dense(g.input("image", {8}), 6, {.name = "first"}), {.name = "norm"}));
  return g.dense(x, 4, {.name = "head"});
}

std::vector<std::string> changed_by(Model& model) {
  const auto before = variables_of(model);
  model.fit(blobs(48).batch({.global_batch = 16}), {.epochs = 2, .verbose = 0});
  model.check_mirrored();
  const auto after = variables_of(model);
  std::vector<std::string> changed;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] != after[i]) changed.push_back(model.variable_names()[i]);
  }
  return changed;
}

// With decay, momentum, averages and limits of the norm, all of which touch more than gradients do.
TEST(Freezing, KeepsTheBitsUntilUnfrozen) {
  for (const int replicas : {1, 3}) {
    Training training(replicas);
    Model model = training.strategy.build(three_layers, {.seed = 3});
    EXPECT_THAT(model.freeze("first/*"), ElementsAre("first/weights", "first/bias"));
    model.freeze("head/bias");
    const CompileOptions options{.optimizer = with_all_around(grouped())};
    model.compile(options);
    EXPECT_THAT(changed_by(model), ElementsAre("second/weights", "second/bias", "head/weights")) << replicas;
    EXPECT_THAT(model.frozen_variables(), ElementsAre("first/bias", "first/weights", "head/bias"));
    model.unfreeze("*");
    EXPECT_THAT(message_of([&] { changed_by(model); }),
                AllOf(HasSubstr("was unfrozen after compile()"), HasSubstr("call model.compile")));
    model.compile(options);
    EXPECT_EQ(changed_by(model).size(), 6U);
  }
}

// The same weights as where the layers below are no part of what is trained: a norm of gradients counts what
// learns alone.
class FreezingTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(R, FreezingTest, testing::Values(1, 2, 4));

TEST_P(FreezingTest, TrainsAsIfTheOthersWereConstants) {
  Training training(GetParam());
  Optimizer optimizer = sgd(0.1F, {.momentum = 0.9F});
  optimizer.clip.max_norm = 0.01F;
  const auto trained = [&](const std::string& pattern, const Optimizer& by) {
    Model model = training.strategy.build(three_layers, {.seed = 3});
    if (!pattern.empty()) model.freeze(pattern);
    model.compile({.optimizer = by});
    model.fit(blobs(48).batch({.global_batch = 16}), {.epochs = 2, .verbose = 0});
    return model.read_variable("head/weights");
  };
  Optimizer still = optimizer;  // a rate that is 0 from the beginning
  still.groups = {
      {.takes = VariableRule::named("first/*"), .rule = SgdOptions{.momentum = 0.9F}, .learning_rate = 0},
      {.takes = VariableRule::named("second/bias"), .rule = SgdOptions{.momentum = 0.9F}, .learning_rate = 0}};
  Model model = training.strategy.build(three_layers, {.seed = 3});
  model.freeze("first/*");
  model.freeze("second/bias");
  model.compile({.optimizer = optimizer});
  model.fit(blobs(48).batch({.global_batch = 16}), {.epochs = 2, .verbose = 0});
  EXPECT_EQ(model.read_variable("head/weights"), trained("", still));
  EXPECT_NE(model.read_variable("head/weights"), trained("", optimizer));
}

// What is sent of a step's gradients in small buckets.
class CountingCollective final : public Collective {
 public:
  int local_replicas() const noexcept override { return 2; }
  void all_reduce_sum(int, const TensorView& tensor, Stream&) override { bytes += tensor.bytes(); }
  void broadcast(int, int, const TensorView&, Stream&) override {}
  void abort(const std::string&) noexcept override {}

  std::size_t bytes = 0;
};

std::size_t bytes_sent(const Model& model, const ReplicaStreams& streams) {
  const ModelState& state = model.state();
  const Program program(*state.graph, state.layout, {});
  const UpdatePlan plan(*state.graph, state.layout, state.compiled->optimizer);
  const LearningPhase phase = learning_phases(program, state.layout, state.graph->size(), plan).front();
  CountingCollective collective;
  Reducer reducer(collective, state.layout.trained_elements(), {.bucket_bytes = 64});
  const TensorView gradients =
      state.optimizer.front().gradients.view({state.layout.trained_elements()}, DType::kF32);
  for (int id = state.graph->size() - 1; id >= 0; --id) {
    reducer.filled(0, gradients, state.layout.filled_after(id), phase.summed, streams);
  }
  reducer.finish(0, gradients, phase.summed, streams);
  reducer.join(0, streams);
  return collective.bytes;
}

// 24 + 4 elements of the head lie first, then 36 + 6, then 48 + 6; each variable begins on a multiple of 16.
TEST(Freezing, SendsNoGradientOfWhatIsFrozen) {
  Training training(1);
  Model model = training.strategy.build(three_layers);
  const auto sent = [&](const std::vector<std::string>& frozen) {
    model.unfreeze("*");
    for (const std::string& pattern : frozen) model.freeze(pattern);
    model.compile({});
    return bytes_sent(model, training.strategy.streams(0)) / sizeof(float);
  };
  EXPECT_EQ(sent({}), 166U);
  EXPECT_EQ(sent({"first/*"}), 102U);
  EXPECT_EQ(sent({"first/*", "second/bias"}), 84U);
  EXPECT_EQ(sent({"second/*"}), 36U + 54);
  EXPECT_EQ(sent({"second/bias"}), 84U + 54);
  EXPECT_EQ(sent({"head/bias"}), 24U + 118);
  EXPECT_EQ(sent({"head/*", "second/*", "first/weights"}), 6U);
  EXPECT_EQ(sent({}), 166U) << "unfrozen again";
}

// A replica's own part of the batch is what it has of a frozen variable whose layer learns.
TEST_P(FreezingTest, SumsWhatLearnsAlone) {
  Training training(GetParam());
  Model model = training.strategy.build(three_layers, {.seed = 3});
  model.freeze("second/bias");
  model.compile({});
  Loader loader(blobs(32).batch({.global_batch = 32}), training.devices);
  Trainer trainer(training.strategy, model, loader, {.step = {.gradient_norms = true}});
  trainer.gradients(std::move(*trainer.take()));
  trainer.all_reduce();
  trainer.finish();
  for (int r = 1; r < GetParam(); ++r) {
    const auto first = gradients_of(model, training.strategy, 0);
    const auto mine = gradients_of(model, training.strategy, r);
    for (const Variable& variable : model.state().layout.variables()) {
      const auto of = [&](const std::vector<float>& arena) {
        const auto begin = arena.begin() + variable.offset;
        return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(variable.spec.shape.elements()));
      };
      EXPECT_EQ(of(first) == of(mine), variable.name != "second/bias") << variable.name;
    }
  }
  trainer.apply_gradients();
  const std::optional<GradientNorms> norms = trainer.gradient_norms();
  ASSERT_EQ(norms->by_variable.size(), 5U);
  for (const auto& [name, norm] : norms->by_variable) EXPECT_NE(name, "second/bias");
  EXPECT_THAT(message_of([&] { trainer.gradient("second/bias", 0); }), HasSubstr("frozen"));
}

TEST(Freezing, LeavesOutTheBackwardPassBelow) {
  Training training(1);
  Model model = training.strategy.build(three_layers);
  model.freeze("first/*");
  model.compile({});
  const ModelState& state = model.state();
  const Program program(*state.graph, state.layout, {});
  const auto needed = program.needed([](const Variable&) { return true; });
  std::vector<std::string> names;
  for (int id = 0; id < state.graph->size(); ++id) {
    if (needed[static_cast<std::size_t>(id)]) names.push_back(state.graph->name(id));
  }
  EXPECT_THAT(names, ElementsAre("second", "second/relu", "head"));
}

TEST(Freezing, StatisticsAreThoseOfTheEvaluation) {
  for (const int replicas : {1, 2, 3}) {
    Training training(replicas);
    Model model = training.strategy.build(normed, {.seed = 3});
    model.compile({});
    changed_by(model);  // statistics of their own
    model.freeze("first/*");
    model.freeze("norm/*");
    model.compile({.optimizer = sgd(0.1F)});
    const Dataset data = blobs(16).batch({.global_batch = 16});
    const double evaluated = model.evaluate(data).loss;
    const History history = model.fit(data, {.verbose = 0});
    EXPECT_NEAR(history["loss"].front(), evaluated, 1e-6) << "the first step's loss";
    EXPECT_THAT(changed_by(model), ElementsAre("head/weights", "head/bias")) << replicas;
  }
}

TEST(Freezing, RefusesWhatCannotBe) {
  Training training(1);
  Model model = training.strategy.build(normed);
  EXPECT_THAT(message_of([&] { model.freeze("conv/*"); }), HasSubstr("'conv/*'"));
  model.freeze("norm/running_mean");
  EXPECT_THAT(message_of([&] { model.compile({}); }), AllOf(HasSubstr("'norm'"), HasSubstr("learn")));
  model.freeze("*");
  EXPECT_THAT(message_of([&] { model.compile({}); }), HasSubstr("nothing to train"));
  model.unfreeze("*");
  EXPECT_NO_THROW(model.compile({}));
}

}  // namespace
}  // namespace headrace::test
