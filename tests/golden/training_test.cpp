// A few steps of training against PyTorch's (make_expected.py wrote expected.json).
#include <nlohmann/json.hpp>

#include "headrace/pipeline/loader.h"
#include "headrace/tests/golden/recorded_run.h"
#include "headrace/tests/train/training_fixture.h"

namespace headrace::test {
namespace {

using nlohmann::json;

Node mlp(Graph& g) { return g.dense(g.dense(g.input("image"), 16, {.activation = Activation::kRelu}), 5); }

Node conv_net(Graph& g) {
  Node x =
      g.relu(g.batch_norm(g.conv(g.input("image"), 4, {.bias = false}), {.momentum = 0.9F, .epsilon = 1e-3F}));
  x = g.conv(g.max_pool(x, 2), 6, {.padding = ConvPadding::kValid, .activation = Activation::kGelu});
  return g.dense(g.global_average_pool(x), 5);
}

Node residual(Graph& g) {
  const Node x = g.conv(g.input("image"), 4, {.stride = 2, .activation = Activation::kSilu});
  return g.dense(g.flatten(g.add(x, g.conv(x, 4, {.activation = Activation::kRelu}))), 5);
}

struct Case {
  std::string name;
  Net net;
  Optimizer optimizer;
  float label_smoothing = 0;
};

std::ostream& operator<<(std::ostream& out, const Case& each) { return out << each.name; }

const Case kCases[] = {
    {"mlp_adam", mlp, adam(1e-2F)},
    {"mlp_sgd", mlp, sgd(5e-2F)},
    {"mlp_nesterov", mlp, sgd(5e-2F, {.momentum = 0.9F, .weight_decay = 1e-2F, .nesterov = true}), 0.1F},
    {"conv_net_adamw", conv_net, adam(1e-2F, {.weight_decay = 5e-2F})},
    {"residual_momentum", residual, sgd(5e-2F, {.momentum = 0.9F})},
};

json expected_training() { return read_expected("expected.json"); }

Shape shape_of(const json& extents) {
  const auto values = extents.get<std::vector<std::int64_t>>();
  return Shape(values);
}

class TrainingGolden : public testing::TestWithParam<Case> {};

TEST_P(TrainingGolden, FollowsPyTorch) {
  const json expected = expected_training();
  const json& run = expected["cases"].at(GetParam().name);
  const Dataset data = labelled(shape_of(run["shape"]), run["images"].get<std::vector<float>>(),
                                run["labels"].get<std::vector<std::int64_t>>())
                           .batch({.global_batch = expected["batch"].get<std::int64_t>()});
  Training training(1);  // whose batch norm sees the whole batch
  Model model = training.strategy.build(GetParam().net, {.fields = data.fields()});
  model.compile({.optimizer = GetParam().optimizer,
                 .loss = sparse_categorical_crossentropy({.label_smoothing = GetParam().label_smoothing})});
  ASSERT_EQ(model.variable_names().size(), run["initial"].size());
  write_initial(run["initial"], model);

  Loader loader(data, training.devices);
  Trainer trainer(training.strategy, model, loader);
  expect_run(run, model, trainer);
}

INSTANTIATE_TEST_SUITE_P(Cases, TrainingGolden, testing::ValuesIn(kCases),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace headrace::test
