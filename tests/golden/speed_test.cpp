// The recipes cifar10-fast and cifar10-fast-b, on a narrow net, against PyTorch's (make_speed_expected.py wrote
// speed_expected.json).
#include <nlohmann/json.hpp>

#include "headrace/pipeline/loader.h"
#include "headrace/tests/golden/recorded_run.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/tools/recipes/speed_recipe.h"
#include "headrace/train/nets.h"

namespace headrace::test {
namespace {

using nlohmann::json;

// make_speed_expected.py makes the same integers.
std::uint32_t mixed(std::uint64_t index, std::uint32_t salt) {
  auto h = static_cast<std::uint32_t>(index) * 0x9E3779B1U + salt * 0x85EBCA77U;
  h = (h ^ (h >> 16)) * 0x7FEB352DU;
  h = (h ^ (h >> 15)) * 0x846CA68BU;
  return h ^ (h >> 16);
}

std::vector<float> numbers(std::int64_t count, std::uint32_t salt, float scale = 1) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t bits = mixed(static_cast<std::uint64_t>(i), salt) >> 8;
    values.push_back((static_cast<float>(bits) / 8388608.0F - 1.0F) * scale);
  }
  return values;
}

std::vector<float> filters(const Shape& shape, std::uint32_t salt) {
  const std::int64_t filter = shape.elements() / shape[0];
  std::vector<float> values = numbers(shape.elements(), salt, 1.0F / std::sqrt(static_cast<float>(filter)));
  if (shape[1] != 3) return values;
  for (std::int64_t f = 0; f < std::min(shape[0], shape[3]); ++f) {
    std::fill_n(values.begin() + f * filter, filter, 0.0F);
    values[static_cast<std::size_t>(f * filter + 4 * shape[3] + f)] = 1.0F;
  }
  return values;
}

// What the variable holds at first; nothing for one that keeps its usual start.
std::vector<float> start(const std::string& name, const Shape& shape) {
  const std::size_t digit = name.find('_', name.starts_with("batch_norm") ? 6 : 0);
  const std::uint32_t number = digit < name.find('/') ? static_cast<std::uint32_t>(name[digit + 1] - '0') : 0;
  if (name == "whiten/weights") return filters(shape, 1);
  if (name == "whiten/bias") return numbers(shape.elements(), 2, 0.1F);
  if (name == "head/weights") return numbers(shape.elements(), 3, 1.7F);
  if (name.starts_with("conv")) return filters(shape, 10 + number);
  if (name.ends_with("/beta")) return numbers(shape.elements(), 20 + number, 0.1F);
  return {};
}

json expected_speed() { return read_expected("speed_expected.json"); }

const char* expected_recipes() { return on_gpu() ? "recipes_with_muon_in_bf16" : "recipes"; }

// A GPU's Muon multiplies in bf16 and is compared with PyTorch's that does. Where a sum of another order is
// rounded the other way, the next steps multiply the difference: from a thousandth of a weight's size after the
// first step to .4 of it after the fourth. PyTorch's own runs differ as much where only those sums do ("spread",
// make_speed_expected.py), and a GPU's may by as much again, within `limit`.
double tolerance(double on_cpu, const json& expected, const char* of, const char* what, double limit) {
  if (!on_gpu()) return on_cpu;
  const json& spread = expected["spread"][of];
  return std::min(limit, 4 * on_cpu + 2 * (spread.is_object() ? spread[what] : spread).get<double>());
}

// `of`: "first_step" or "final".
void expect_variables(Model& model, const json& expected, const char* of) {
  for (const auto& [name, summary] : expected[of].items()) {
    const std::vector<float> values = model.read_variable(name);
    double sum = 0, squares = 0;
    for (const float value : values) {
      sum += static_cast<double>(value);
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    const double norm = summary["norm"].get<double>();
    const double typical = norm / std::sqrt(static_cast<double>(values.size()));
    EXPECT_NEAR(std::sqrt(squares), norm, 1e-6 + tolerance(1e-5, expected, of, "norm", 0.02) * norm) << name;
    if (on_gpu() && of == std::string_view("final")) continue;  // single weights tell no more
    EXPECT_NEAR(sum, summary["sum"].get<double>(), 1e-6 + tolerance(1e-4, expected, of, "sum", 0.02) * norm)
        << name;
    for (std::size_t i = 0; i < summary["first"].size(); ++i) {
      EXPECT_NEAR(static_cast<double>(values[i]), summary["first"][i].get<double>(),
                  1e-6 + tolerance(1e-4, expected, of, "weights", 0.02) * typical)
          << name << "[" << i << "]";
    }
  }
}

class SpeedGolden : public testing::TestWithParam<tools::SpeedRecipe> {
 protected:
  Dataset data() const {
    const std::int64_t count = batch_ * expected_["steps"].get<std::int64_t>();
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < count; ++i) labels.push_back(mixed(static_cast<std::uint64_t>(i), 5) % 10);
    return labelled({32, 32, 3}, numbers(count * 32 * 32 * 3, 7), labels).batch({.global_batch = batch_});
  }

  Model build(Strategy& strategy) const {
    SpeedNetOptions net = GetParam().net;
    net.first = expected_["widths"][0];
    net.second = expected_["widths"][1];
    net.third = expected_["widths"][2];
    tools::SpeedOptimizerOptions optimizer = GetParam().optimizer;
    optimizer.examples_per_step = batch_;
    optimizer.steps = expected_["total_steps"];
    optimizer.whitening_steps = expected_["whitening_steps"];
    Model model = strategy.build([&](Graph& g) { return cifar10_speed_net(g, net); });
    model.compile({.optimizer = tools::speed_optimizer(optimizer),
                   .loss = sparse_categorical_crossentropy(
                       {.label_smoothing = GetParam().label_smoothing, .reduction = Reduction::kSum})});
    for (const std::string& name : model.variable_names()) {
      const std::vector<float> values = start(name, model.variable_shape(name));
      if (!values.empty()) model.write_variable(name, values);
    }
    return model;
  }

  const json expected_ = expected_speed();
  const std::int64_t batch_ = expected_["batch"];
};

TEST_P(SpeedGolden, FollowsPyTorch) {
  const json& expected = expected_[expected_recipes()][GetParam().name];
  Training training(1);  // whose batch norm sees the whole batch
  Model model = build(training.strategy);
  const Dataset data = this->data();
  Loader loader(data, training.devices);
  Trainer trainer(training.strategy, model, loader);
  for (std::size_t step = 0; step < expected["losses"].size(); ++step) {
    const double loss = expected["losses"][step];
    trainer.reset_metrics();
    ASSERT_TRUE(trainer.step());
    EXPECT_NEAR(mean_loss(trainer.finish()), loss, tolerance(2e-6, expected, "losses", "", 0.02) * loss) << step;
    if (step == 0) expect_variables(model, expected, "first_step");
  }
  expect_variables(model, expected, "final");
  const Evaluation seen = model.evaluate(data, {.views = mirrored_and_shifted_views()});
  const double loss = expected["evaluation"]["loss"];
  EXPECT_NEAR(seen.loss, loss, tolerance(1e-5, expected, "evaluation", "loss", 0.02) * loss);
  EXPECT_NEAR(seen.accuracy * static_cast<double>(seen.examples), expected["evaluation"]["correct"].get<double>(),
              tolerance(1e-6, expected, "evaluation", "correct", 2));
}

INSTANTIATE_TEST_SUITE_P(Recipes, SpeedGolden,
                         testing::Values(tools::cifar10_fast_settings(), tools::cifar10_fast_b_settings()),
                         [](const auto& tested) { return tested.index == 0 ? "A" : "B"; });

}  // namespace
}  // namespace headrace::test
