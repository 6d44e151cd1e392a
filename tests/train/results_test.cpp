// Nets of several results, nets within nets, and variables that several calls share.
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/graph.h"

namespace headrace::test {
namespace {

// Features, and two heads on them.
Results two_heads(Graph& g) {
  const Node x = g.dense(g.input("image", {8}), 6, {.activation = Activation::kRelu, .name = "features"});
  return {g.dense(x, 4, {.name = "left"}), g.softmax(g.dense(x, 4), {.name = "right"})};
}

Node shared(Graph& g) {
  const Node x = g.dense(g.input("image", {8}), 8, {.activation = Activation::kRelu, .name = "shared"});
  const Node y = g.again(x, {g.again(x, {x})});
  return g.dense(g.add(x, y), 4, {.name = "head"});
}

TEST(Results, LossesAndMetricsNameTheirs) {
  Training training(2);
  Model model = training.strategy.build(two_heads, {.seed = 3});
  const Loss loss = sparse_categorical_crossentropy();
  model.compile({.optimizer = adam(2e-2F),
                 .loss = loss.of("left") + sparse_categorical_crossentropy({.from_logits = false}).of("right"),
                 .metrics = {accuracy(), accuracy().of("right"), top_k(2).of("right")}});
  const Dataset data = blobs(64).batch({.global_batch = 16});
  const History history = model.fit(data, {.epochs = 25, .verbose = 0});
  EXPECT_LT(history["loss"].back(), 0.3 * history["loss"].front());
  const Evaluation evaluation = model.evaluate(data);
  std::vector<std::string> names;
  for (const MetricValue& value : evaluation.metrics) names.push_back(value.name);
  EXPECT_THAT(names, ElementsAre("accuracy", "right/accuracy", "right/top_2", "left_loss", "right_loss"));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_GE(evaluation.metrics[i].number(), 0.9) << names[i];
}

// What is weighted and added to is the sum that one loss alone gives.
TEST(Results, TheLossIsTheSumOverThem) {
  Training training(1);
  Model model = training.strategy.build(two_heads, {.seed = 3});
  const Dataset data = blobs(32).batch({.global_batch = 16});
  const Loss left = sparse_categorical_crossentropy().of("left");
  const Loss right = sparse_categorical_crossentropy({.from_logits = false}).of("right");
  const auto loss_of = [&](const Loss& loss) {
    model.compile({.loss = loss, .metrics = {}});
    return model.evaluate(data).loss;
  };
  EXPECT_NEAR(loss_of(left + 0.25F * right), loss_of(left) + 0.25 * loss_of(right), 1e-9);
}

TEST(Results, AHeadWithoutALossStaysAsItIs) {
  Training training(1);
  Model model = training.strategy.build(two_heads, {.seed = 3});
  model.compile({.optimizer = sgd(0.1F), .loss = sparse_categorical_crossentropy().of("left")});
  const std::vector<float> before = model.read_variable("dense/weights");
  const std::vector<float> features = model.read_variable("features/weights");
  model.fit(blobs(64).batch({.global_batch = 16}), {.verbose = 0});
  EXPECT_EQ(model.read_variable("dense/weights"), before);
  EXPECT_NE(model.read_variable("features/weights"), features);
}

TEST(Results, PredictGivesAllOfThem) {
  Training training(2);
  Model model = training.strategy.build(two_heads, {.seed = 3});
  Model left = training.strategy.build(net_of(model.graph(), {"left"}), {.seed = 3});
  Model right = training.strategy.build(net_of(model.graph(), {"right"}), {.seed = 3});
  left.copy_variables(model);
  right.copy_variables(model);
  const Dataset data = blobs(11).batch({.global_batch = 8});
  const Predictions both = model.predict(data);
  EXPECT_EQ(both.shape, (Shape{11, 4}));
  EXPECT_EQ(both.values, left.predict(data).values);
  ASSERT_EQ(both.others.size(), 1U);
  EXPECT_EQ(both.others[0].layer, "right");
  EXPECT_EQ(both.others[0].shape, (Shape{11, 4}));
  EXPECT_EQ(both.others[0].values, right.predict(data).values);
  EXPECT_TRUE(left.predict(data).others.empty());
}

TEST(Results, ErrorsNameThoseThereAre) {
  Training training(1);
  Model model = training.strategy.build(two_heads);
  const auto compiled_for = [&](const std::string& layer) {
    return message_of([&] { model.compile({.loss = sparse_categorical_crossentropy().of(layer)}); });
  };
  EXPECT_THAT(compiled_for("middle"), AllOf(HasSubstr("'middle'"), HasSubstr("'left', 'right'")));
  EXPECT_THAT(compiled_for("right"), HasSubstr("softmax"));
  EXPECT_THAT(message_of([&] { model.compile({.metrics = {accuracy(), accuracy()}}); }), HasSubstr("two metrics"));
}

TEST(Results, ThatLieWithinArePredictedAsTheyAre) {
  Training training(1);
  Model model = training.strategy.build(small_mlp, {.seed = 3});
  Model features = training.strategy.build(net_of(model.graph(), {"dense/relu"}), {.seed = 4});
  EXPECT_THAT(features.variable_names(), ElementsAre("dense/weights", "dense/bias"));
  EXPECT_THAT(features.copy_variables(model), ElementsAre("dense/weights", "dense/bias"));
  const Predictions predictions = features.predict(blobs(5).batch({.global_batch = 4}));
  EXPECT_EQ(predictions.shape, (Shape{5, 16}));
  EXPECT_EQ(features.read_variable("dense/weights"), model.read_variable("dense/weights"));
}

TEST(NetWithinANet, IsCalledOnNodesAndSharesWhenCalledAgain) {
  Training training(1);
  const Model encoder = training.strategy.build(small_mlp, {.seed = 3});
  const Net twins = [&](Graph& g) {
    const Node a = g.input("image", {8});
    const Node x = g.call(encoder.graph(), {a}, {.name = "encoder", .outputs = {"dense/relu"}}).front();
    const Node y =
        g.call(encoder.graph(), {g.scale(a, -1)}, {.name = "encoder", .outputs = {"dense/relu"}}).front();
    return g.dense(g.add(x, y), 4, {.name = "head"});
  };
  Model model = training.strategy.build(twins, {.seed = 3});
  EXPECT_THAT(model.variable_names(),
              ElementsAre("encoder/dense/weights", "encoder/dense/bias", "head/weights", "head/bias"));
  model.compile({.optimizer = adam(1e-2F)});
  const History history = model.fit(blobs(64).batch({.global_batch = 16}), {.epochs = 8, .verbose = 0});
  EXPECT_LT(history["loss"].back(), 0.5 * history["loss"].front());
  Model same = training.strategy.build(net_from_json(to_json(model.graph())), {.seed = 3});
  EXPECT_EQ(same.variable_names(), model.variable_names());
}

TEST(NetWithinANet, RefusesOtherShapesAndCounts) {
  Training training(1);
  const Model encoder = training.strategy.build(small_mlp);
  Graph g;
  const Node x = g.input("wide", {9});
  EXPECT_THAT(message_of([&] { g.call(encoder.graph(), {x}); }), AllOf(HasSubstr("(9,)"), HasSubstr("(8,)")));
  const Node y = g.input("image", {8});
  EXPECT_THAT(message_of([&] { g.call(encoder.graph(), {y, y}, {.name = "a"}); }), HasSubstr("1 inputs"));
  EXPECT_THAT(message_of([&] { g.call(encoder.graph(), {y}, {.outputs = {"conv"}}); }), HasSubstr("'conv'"));
  const Graph open;
  EXPECT_THAT(message_of([&] { g.call(open); }), HasSubstr("not finished"));
}

TEST(SharedVariables, AreOneAndCountOnce) {
  Training training(1);
  const Model model = training.strategy.build(shared);
  EXPECT_THAT(model.variable_names(), ElementsAre("shared/weights", "shared/bias", "head/weights", "head/bias"));
  EXPECT_EQ(model.parameter_count(), 8 * 8 + 8 + 8 * 4 + 4);
  Graph g;
  const Node x = g.dense(g.input("image", {8}), 8);
  EXPECT_THAT(message_of([&] { g.again(g.dense(x, 5), {g.input("other", {4})}); }), HasSubstr("shapes differ"));
}

// An update that waits for all gradients, as a limit of their norm does, is the same as one that comes as soon as
// a slice of them is final: no slice is, before all calls have added theirs.
TEST(SharedVariables, AreUpdatedWhenAllCallsHaveAddedTheirs) {
  const auto trained = [](float max_norm, int replicas) {
    Training training(replicas);
    Optimizer optimizer = sgd(0.05F, {.momentum = 0.9F});
    optimizer.clip.max_norm = max_norm;
    Model model = compiled(training.strategy, shared, optimizer);
    model.fit(blobs(64).batch({.global_batch = 16}), {.epochs = 2, .verbose = 0});
    model.check_mirrored();
    return variables_of(model);
  };
  for (const int replicas : {1, 2}) EXPECT_EQ(trained(0, replicas), trained(1e30F, replicas)) << replicas;
}

TEST(SharedVariables, TrainAsOnOneReplica) {
  const auto trained = [](int replicas) {
    Training training(replicas);
    Model model = compiled(training.strategy, shared, sgd(0.05F));
    model.fit(blobs(40).batch({.global_batch = 16}), {.epochs = 2, .verbose = 0});
    return variables_of(model);
  };
  const auto one = trained(1), three = trained(3);
  for (std::size_t v = 0; v < one.size(); ++v) {
    for (std::size_t i = 0; i < one[v].size(); ++i) EXPECT_NEAR(one[v][i], three[v][i], 1e-5 * slack());
  }
}

}  // namespace
}  // namespace headrace::test
