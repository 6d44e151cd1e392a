// Every layer's gradient against central differences of the loss, through whole nets.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "headrace/pipeline/loader.h"
#include "headrace/tests/train/toy_data.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/engine/model_state.h"
#include "headrace/train/trainer.h"

namespace headrace {
namespace {

constexpr std::int64_t kExamples = 5, kBatch = 8;  // three rows of padding
constexpr std::uint64_t kDataSeed = 2;  // with 1 a max pool meets two values that differ by less than the step

struct GradientCase {
  std::string name;
  Net net;
  Shape shape;
  float label_smoothing = 0;
};

std::ostream& operator<<(std::ostream& out, const GradientCase& each) { return out << each.name; }

// The loss and gradients of one fixed batch at the model's present parameters.
class GradientProbe {
 public:
  GradientProbe(test::Training& training, const GradientCase& given)
      : strategy_(training.strategy),
        model_(test::compiled(training.strategy, given.net)),
        loader_(test::blobs(kExamples, given.shape, 3, kDataSeed).batch({.global = kBatch}), training.devices,
                options()),
        trainer_(training.strategy, compile(given), loader_, {.seed = 5}) {}

  double loss() {
    trainer_.reset_metrics();
    trainer_.discard_gradients();
    trainer_.gradients(std::move(*trainer_.take()));
    return mean_loss(trainer_.finish());
  }

  std::vector<float> gradient(const Variable& variable) {
    loss();
    const std::vector<float> all = test::gradients_of(model_, strategy_);
    const auto first = all.begin() + variable.offset;
    return {first, first + variable.spec.shape.elements()};
  }

  Model& model() { return model_; }

 private:
  static LoaderOptions options() {
    LoaderOptions options;
    options.epochs = 1'000'000;
    options.threads = 1;
    return options;
  }

  Model& compile(const GradientCase& given) {
    model_.compile({.loss = sparse_categorical_crossentropy({.label_smoothing = given.label_smoothing})});
    return model_;
  }

  Strategy& strategy_;
  Model model_;
  Loader loader_;
  Trainer trainer_;
};

double difference(GradientProbe& probe, const Variable& variable, std::vector<float> values, std::size_t at) {
  constexpr float kStep = 1e-3F;
  const float value = values[at];
  values[at] = value + kStep;
  probe.model().write_variable(variable.name, values);
  const double above = probe.loss();
  values[at] = value - kStep;
  probe.model().write_variable(variable.name, values);
  const double below = probe.loss();
  values[at] = value;
  probe.model().write_variable(variable.name, values);
  return (above - below) / (2.0 * kStep);
}

class GradientTest : public testing::TestWithParam<GradientCase> {};

// The loss is right to about 1e-7, so a difference quotient to about 1e-4; an average gradient here is 1e-2 or
// more. What the step crosses of a kink adds up to 1 % in norm.
TEST_P(GradientTest, EqualsTheDifferenceQuotient) {
  test::Training training(1);  // whose gradients are those of the whole batch
  GradientProbe probe(training, GetParam());
  for (const Variable& variable : probe.model().state().layout.variables()) {
    if (variable.spec.role != VariableRole::kTrained) continue;
    const std::vector<float> gradient = probe.gradient(variable);
    const std::vector<float> values = probe.model().read_variable(variable.name);
    double error = 0, norm = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double expected = difference(probe, variable, values, i);
      error += (expected - gradient[i]) * (expected - gradient[i]);
      norm += expected * expected;
    }
    EXPECT_LE(std::sqrt(error), 0.01 * std::sqrt(norm) + 1e-4 * std::sqrt(static_cast<double>(values.size())))
        << variable.name << ", norm " << std::sqrt(norm);
    EXPECT_GT(norm, 0.0) << variable.name;
  }
}

Node head(Graph& g, Node x) { return g.dense(x, 3, {.name = "head"}); }

const Shape kImage{4, 4, 2};

const GradientCase kCases[] = {
    {"dense", [](Graph& g) { return head(g, g.dense(g.input("image", {5}), 4)); }, {5}},
    {"dense_on_three_axes", [](Graph& g) { return head(g, g.flatten(g.dense(g.input("image", kImage), 3))); },
     kImage},
    {"dense_relu",
     [](Graph& g) { return head(g, g.dense(g.input("image", {5}), 6, {.activation = Activation::kRelu})); },
     {5}},
    {"dense_gelu",
     [](Graph& g) { return head(g, g.dense(g.input("image", {5}), 6, {.activation = Activation::kGelu})); },
     {5}},
    {"dense_silu",
     [](Graph& g) { return head(g, g.dense(g.input("image", {5}), 6, {.activation = Activation::kSilu})); },
     {5}},
    {"no_bias_smoothing",
     [](Graph& g) {
       return g.dense(g.gelu(g.dense(g.input("image", {5}), 6, {.bias = false})), 3, {.bias = false});
     },
     {5},
     0.2F},
    {"conv", [](Graph& g) { return head(g, g.flatten(g.conv(g.conv(g.input("image", kImage), 3), 2))); }, kImage},
    {"conv_strided_valid",
     [](Graph& g) {
       Node x = g.conv(g.input("image", kImage), 3, {.kernel = 2, .padding = ConvPadding::kValid});
       return head(g, g.flatten(g.conv(x, 2, {.kernel = 3, .stride = 2, .bias = false})));
     },
     kImage},
    {"conv_even_kernel_relu",
     [](Graph& g) {
       Node x = g.conv(g.input("image", kImage), 3, {.kernel = 2, .activation = Activation::kRelu});
       return head(g, g.flatten(x));
     },
     kImage},
    {"batch_norm",
     [](Graph& g) {
       Node x = g.batch_norm(g.conv(g.input("image", kImage), 3));
       return head(g, g.flatten(g.gelu(x)));
     },
     kImage},
    {"batch_norm_first_without_scale",
     [](Graph& g) { return head(g, g.flatten(g.batch_norm(g.input("image", kImage), {.scale = false}))); },
     kImage},
    {"max_pool", [](Graph& g) { return head(g, g.flatten(g.max_pool(g.conv(g.input("image", kImage), 3), 2))); },
     kImage},
    {"max_pool_overlapping",
     [](Graph& g) {
       return head(g, g.flatten(g.max_pool(g.conv(g.input("image", kImage), 3), 3, {.stride = 1})));
     },
     kImage},
    {"conv_with_frozen_weights",
     [](Graph& g) {
       Node x = g.conv(g.conv(g.input("image", kImage), 3), 3, {.trained_weights = false});
       return head(g, g.flatten(g.conv(g.gelu(x), 2, {.bias = false, .trained_weights = false})));
     },
     kImage},
    {"scale",
     [](Graph& g) { return g.scale(head(g, g.scale(g.dense(g.input("image", {5}), 4), -3)), 0.5F); },
     {5}},
    {"global_average_pool",
     [](Graph& g) { return head(g, g.global_average_pool(g.silu(g.conv(g.input("image", kImage), 4)))); }, kImage},
    {"dropout", [](Graph& g) { return head(g, g.dropout(g.dense(g.input("image", {5}), 6), 0.4F)); }, {5}},
    {"dropout_two",
     [](Graph& g) {
       return head(g, g.dropout(g.dense(g.dropout(g.gelu(g.dense(g.input("image", {5}), 6)), 0.3F), 6), 0.4F));
     },
     {5}},
    {"add",
     [](Graph& g) {
       const Node x = g.gelu(g.dense(g.input("image", {5}), 6));
       return head(g, g.add(x, g.silu(g.dense(x, 6))));
     },
     {5}},
    {"add_branch_first",
     [](Graph& g) {
       const Node x = g.dense(g.input("image", {5}), 6);
       return head(g, g.add(g.dense(g.gelu(x), 6), x));
     },
     {5}},
    {"add_to_itself",
     [](Graph& g) {
       const Node x = g.dense(g.input("image", {5}), 6);
       return head(g, g.gelu(g.add(x, x)));
     },
     {5}},
    {"three_readers",
     [](Graph& g) {
       const Node x = g.dense(g.input("image", {5}), 6);
       const Node y = g.add(g.gelu(x), g.relu(x));
       return head(g, g.add(g.dropout(y, 0.3F), g.batch_norm(x)));
     },
     {5}},
    {"conv_strided_even",
     [](Graph& g) {
       Node x = g.conv(g.input("image", kImage), 3, {.stride = 2, .padding = ConvPadding::kEven, .bias = false});
       return head(g, g.flatten(g.conv(x, 2, {.kernel = 1, .stride = 2, .padding = ConvPadding::kEven})));
     },
     kImage},
    // A block of a residual net that changes the shape, then one that does not; smooth, so that no step crosses a
    // kink.
    {"residual_blocks",
     [](Graph& g) {
       const auto conv = [&](Node x, int kernel, int stride) {
         return g.batch_norm(
             g.conv(x, 3, {.kernel = kernel, .stride = stride, .padding = ConvPadding::kEven, .bias = false}),
             {.epsilon = 1e-2F});
       };
       const Node x = g.input("image", kImage);
       const Node y = g.silu(g.add(conv(g.silu(conv(x, 3, 2)), 3, 1), conv(x, 1, 2)));
       return head(g, g.global_average_pool(g.silu(g.add(conv(g.silu(conv(y, 3, 1)), 3, 1), y))));
     },
     kImage},
    {"flatten_shared",
     [](Graph& g) {
       const Node x = g.conv(g.input("image", kImage), 2);
       return g.add(head(g, g.flatten(g.gelu(x))), g.dense(g.flatten(x), 3));
     },
     kImage},
};

INSTANTIATE_TEST_SUITE_P(Layers, GradientTest, testing::ValuesIn(kCases),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace headrace
