// Twenty steps with each loss against PyTorch's (make_losses_expected.py wrote losses_expected.json).
#include <nlohmann/json.hpp>

#include "headrace/pipeline/loader.h"
#include "headrace/tests/golden/recorded_run.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/losses.h"

namespace headrace::test {
namespace {

struct GoldenLoss {
  std::string name;
  Loss loss;
  bool softmax = false;
};

std::ostream& operator<<(std::ostream& out, const GoldenLoss& each) { return out << each.name; }

const GoldenLoss kGoldenLosses[] = {
    {"categorical", categorical_crossentropy()},
    {"categorical_smoothed", categorical_crossentropy({.from_logits = false, .label_smoothing = 0.1F}), true},
    {"mean_squared_error", mean_squared_error()},
    {"mean_absolute_error", mean_absolute_error()},
    {"binary", binary_crossentropy()},
    {"binary_of_probabilities", binary_crossentropy({.from_logits = false}), true},
    {"squared_error_of_probabilities", mean_squared_error(), true},
    {"binary_smoothed", binary_crossentropy({.label_smoothing = 0.2F})},
    {"weighted_sum", 0.7F * categorical_crossentropy() + 0.3F * mean_squared_error()},
};

const nlohmann::json& expected_losses() {
  static const nlohmann::json expected = read_expected("losses_expected.json");
  return expected;
}

class LossesGolden : public testing::TestWithParam<GoldenLoss> {};
INSTANTIATE_TEST_SUITE_P(Losses, LossesGolden, testing::ValuesIn(kGoldenLosses),
                         [](const auto& each) { return each.param.name; });

TEST_P(LossesGolden, FollowsPyTorchForTwentySteps) {
  const nlohmann::json& all = expected_losses();
  const nlohmann::json& run = all["cases"].at(GetParam().name);
  const auto images = all["images"].get<std::vector<float>>(), labels = all["labels"].get<std::vector<float>>();
  const auto batch = all["batch"].get<std::int64_t>();
  const std::size_t records = labels.size() / 3;
  const Dataset data =
      Dataset::from(
          in_memory("golden", records, {array_of("image", Shape{6}, images), array_of("label", Shape{3}, labels)}))
          .batch({.global_batch = batch});
  for (const int replicas : {1, 2}) {
    Training training(replicas);
    Model model = training.strategy.build(
        [](Graph& g) { return g.dense(g.dense(g.input("image", {6}), 8, {.activation = Activation::kGelu}), 3); });
    if (GetParam().softmax) {
      model = training.strategy.build([](Graph& g) {
        return g.softmax(g.dense(g.dense(g.input("image", {6}), 8, {.activation = Activation::kGelu}), 3));
      });
    }
    model.compile({.optimizer = sgd(0.1F, {.momentum = 0.9F}), .loss = GetParam().loss, .metrics = {}});
    write_initial(all["initial"], model);
    Loader loader(data, training.devices);
    Trainer trainer(training.strategy, model, loader);
    ASSERT_EQ(run["losses"].size(), 20U);
    expect_run(run, model, trainer);
  }
}

}  // namespace
}  // namespace headrace::test
