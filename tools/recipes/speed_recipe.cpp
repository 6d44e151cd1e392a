#include "headrace/tools/recipes/speed_recipe.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "headrace/devices/registry.h"
#include "headrace/pipeline/loader.h"
#include "headrace/tools/pipelines/pipelines.h"
#include "headrace/tools/recipes/recipe_data.h"
#include "headrace/train/strategy.h"

namespace headrace::tools {
namespace {

constexpr std::int64_t kReadBatch = 1000;
constexpr std::int64_t kMinTestBatch = 1000;

// Afterwards the samples are in the cache.
void read_all(const Dataset& data, const LoaderOptions& input) {
  DeviceGroup host = open_devices("cpu:1");
  Loader loader(data.batch({.global_batch = kReadBatch}), host, input);
  while (loader.next()) continue;
}

// Fewer steps than a pass has where the recipe's epoch is shorter; as the user says where he does.
std::uint64_t steps_per_epoch(const SpeedRecipe& recipe, const Dataset& train, const FitOptions& fit) {
  if (fit.steps_per_epoch > 0 || recipe.epoch_parts == recipe.parts_of_pass) return fit.steps_per_epoch;
  const std::uint64_t parts = steps_of_pass(train, fit) * recipe.epoch_parts;
  return std::max<std::uint64_t>(1, (parts + recipe.parts_of_pass - 1) / recipe.parts_of_pass);
}

SpeedOptimizerOptions optimizer_of(const SpeedRecipe& recipe, std::int64_t batch, const Dataset& train,
                                   const FitOptions& fit) {
  SpeedOptimizerOptions options = recipe.optimizer;
  const auto batches = static_cast<std::int64_t>(train.steps_per_epoch());
  options.examples_per_step = batch * std::min<std::int64_t>(fit.step.accumulate, batches);
  options.steps = steps_of_fit(train, fit);
  const auto pass = static_cast<double>(steps_of_pass(train, fit));
  options.whitening_steps = static_cast<std::uint64_t>(std::ceil(recipe.whitening_passes * pass));
  return options;
}

Schedule falling(float peak, std::uint64_t steps) {
  return Schedule::linear_decay({.peak = peak, .total_steps = std::max<std::uint64_t>(1, steps)});
}

float decay_of(const SpeedOptimizerOptions& options) {
  return options.decay_per_example * static_cast<float>(options.examples_per_step);
}

MuonOptions muon_of(const SpeedOptimizerOptions& options) {
  MuonOptions muon = options.muon;
  muon.adjust_rate = MuonRate::kNone;
  muon.normalize = true;
  muon.weight_decay = options.convs_decay ? decay_of(options) : 0;
  muon.norm_interval.over_steps = std::max<std::uint64_t>(1, options.steps);
  return muon;
}

// The rule multiplies its decay by the rate.
ParameterGroup nesterov(VariableRule takes, float rate, const SpeedOptimizerOptions& options,
                        std::uint64_t steps) {
  return {
      .takes = std::move(takes),
      .rule = SgdOptions{.momentum = options.momentum, .weight_decay = decay_of(options) / rate, .nesterov = true},
      .learning_rate = falling(rate, steps)};
}

}  // namespace

Operations crop_and_flip() { return pad_crop(32, 2, Padding::kReflect) | alternating_flip(); }
Operations normalize_cifar() { return normalize(kCifarMean, kCifarStd); }

Recipe make_speed_recipe(const SpeedRecipe& recipe, const RecipeOptions& options) {
  const Splits splits = open_splits(recipe.name, options);
  const RecipeImages all = images_of(splits.train, 32, options);
  const RecipeImages test = images_of(splits.test, 32, options);
  const std::int64_t batch = batch_size(options, recipe.global_batch);
  const Dataset train = batched(all.dataset.shuffle().map(recipe.augmentation),
                                {.global_batch = batch, .drop_remainder = true}, options);
  FitOptions fit = fit_of(options, recipe.epochs);
  fit.steps_per_epoch = steps_per_epoch(recipe, train, fit);
  const Dataset first =
      all.dataset.take(std::min(recipe.whitening_images, all.dataset.size())).map(normalize_cifar());
  const auto images = std::make_shared<ImageBlock>();
  const LoaderOptions input = host_input(options);
  // As in training, with the same convolutions: a GPU has chosen its kernels for them.
  const std::int64_t test_batch = std::max(batch, kMinTestBatch);
  return {.name = recipe.name,
          .global_batch = batch,
          .train = train,
          .fit = fit,
          .test = batched(test.dataset.map(normalize_cifar()), {.global_batch = test_batch}, options),
          .net = [net = recipe.net](Graph& graph) { return cifar10_speed_net(graph, net); },
          .optimizer = speed_optimizer(optimizer_of(recipe, batch, train, fit)),
          .loss = sparse_categorical_crossentropy(
              {.label_smoothing = recipe.label_smoothing, .reduction = Reduction::kSum}),
          .tuned_plans = true,
          .views = mirrored_and_shifted_views(),
          .load =
              [=] {
                if (all.cached) read_all(all.dataset, input);
                if (test.cached) read_all(test.dataset, input);
                *images = read_images(first.batch({.global_batch = kReadBatch}), input);
              },
          .initialise =
              [=](Model& model) {
                const auto whitening = std::make_shared<Whitening>(*images, model.strategy().device(0));
                return [whitening, &model] { model.write_variable("whiten/weights", whitening->filters()); };
              }};
}

Optimizer speed_optimizer(const SpeedOptimizerOptions& options) {
  Optimizer optimizer = muon(falling(options.conv_rate, options.steps), muon_of(options));
  const VariableRule bias = VariableRule::of_kind("conv") && VariableRule::of_rank(1);
  optimizer.groups = {nesterov(bias, options.bias_rate, options, options.whitening_steps),
                      nesterov(VariableRule::of_kind("batch_norm"), options.bias_rate, options, options.steps),
                      nesterov(VariableRule::of_kind("dense"), options.head_rate, options, options.steps)};
  return optimizer;
}

}  // namespace headrace::tools
