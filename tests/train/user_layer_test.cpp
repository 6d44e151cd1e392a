// A user's layer is trained, written and read like the tree's own.
#include "headrace/tests/train/user_layer.h"
#include "headrace/tests/train/gradient_fixture.h"
#include "headrace/train/graph.h"

namespace headrace::test {
namespace {

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
