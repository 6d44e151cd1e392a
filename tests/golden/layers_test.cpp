// Twenty steps of nets with some layers against PyTorch's (make_layers_expected.py wrote layers_expected.json).
#include <nlohmann/json.hpp>

#include "headrace/pipeline/loader.h"
#include "headrace/tests/golden/recorded_run.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/layers.h"

namespace headrace::test {
namespace {

constexpr int kGoldenClasses = 3;

Node golden_images(Graph& g) { return g.input("image", {6, 6, 2}); }

Node average_pool_net(Graph& g) {
  const Node x = g.average_pool(g.tanh(g.conv(golden_images(g), 4)), 3, {.stride = 2});
  return g.dense(g.flatten(x), kGoldenClasses);
}

Node concat_net(Graph& g) {
  const Node x = golden_images(g);
  const Node left = g.sigmoid(g.conv(x, 3)), right = g.relu(g.conv(x, 2));
  return g.dense(g.flatten(g.concat({left, x, right})), kGoldenClasses);
}

Node add_three_net(Graph& g) {
  const Node x = g.silu(g.conv(golden_images(g), 4));
  const Node y = g.conv(x, 4);
  return g.dense(g.global_average_pool(g.add({x, y, g.conv(y, 4)})), kGoldenClasses);
}

Node softmax_inside_net(Graph& g) {
  return g.dense(g.softmax(g.dense(g.flatten(golden_images(g)), 8)), kGoldenClasses);
}

Node shared_net(Graph& g) {
  const Node x = g.gelu(g.conv(golden_images(g), 4));
  const Node once = g.conv(x, 4);
  return g.dense(g.global_average_pool(g.again(once, {g.gelu(once)})), kGoldenClasses);
}

Node synchronised_norm_net(Graph& g) {
  const Node x = g.conv(golden_images(g), 4, {.bias = false});
  const Node normal = g.batch_norm(x, {.momentum = 0.9F, .epsilon = 1e-5F, .synchronised = true});
  return g.dense(g.global_average_pool(g.relu(normal)), kGoldenClasses);
}

struct GoldenLayer {
  std::string name;
  Net net;
};

std::ostream& operator<<(std::ostream& out, const GoldenLayer& each) { return out << each.name; }

const GoldenLayer kGoldenLayers[] = {
    {"average_pool", average_pool_net},     {"concat", concat_net}, {"add_three", add_three_net},
    {"softmax_inside", softmax_inside_net}, {"shared", shared_net}, {"synchronised_norm", synchronised_norm_net},
};

const nlohmann::json& expected_layers() {
  static const nlohmann::json expected = read_expected("layers_expected.json");
  return expected;
}

class LayersGolden : public testing::TestWithParam<GoldenLayer> {};
INSTANTIATE_TEST_SUITE_P(Layers, LayersGolden, testing::ValuesIn(kGoldenLayers),
                         [](const auto& each) { return each.param.name; });

TEST_P(LayersGolden, FollowPyTorchForTwentySteps) {
  const nlohmann::json& all = expected_layers();
  const nlohmann::json& run = all["cases"].at(GetParam().name);
  const Dataset data =
      labelled({6, 6, 2}, all["images"].get<std::vector<float>>(), all["labels"].get<std::vector<std::int64_t>>())
          .batch({.global_batch = all["batch"].get<std::int64_t>()});
  for (const int replicas : {1, 2}) {
    Training training(replicas);
    Model model = training.strategy.build(GetParam().net);
    model.compile({.optimizer = sgd(0.05F, {.momentum = 0.9F})});
    write_initial(run["initial"], model);
    Loader loader(data, training.devices);
    Trainer trainer(training.strategy, model, loader);
    ASSERT_EQ(run["losses"].size(), 20U);
    expect_run(run, model, trainer);
  }
}

}  // namespace
}  // namespace headrace::test
