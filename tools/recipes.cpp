#include "headrace/tools/recipes.h"

#include <array>
#include <functional>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/tools/cifar10_fast.h"
#include "headrace/tools/recipe_data.h"
#include "headrace/train/nets.h"

namespace headrace::tools {
namespace {

// Adam whose rate falls from `peak` to nothing over the run.
Optimizer decaying_adam(float peak, const CommonOptions& options, int usual_epochs, const Dataset& train) {
  const std::uint64_t epochs = options.epochs > 0 ? options.epochs : static_cast<std::uint64_t>(usual_epochs);
  return adam(Schedule::linear_decay({.peak = peak, .total_steps = epochs * train.steps_per_epoch()}));
}

// Images as they are stored, u8: the net scales them to [0, 1]. The last records of the training half validate.
Recipe grey_recipe(const std::string& name, const CommonOptions& options, std::uint64_t held_out,
                   std::int64_t batch) {
  const Halves halves = open_halves(name, options);
  const std::uint64_t records = halves.train->info().records;
  if (records <= held_out) {
    throw ConfigError("recipe " + name + " holds out " + std::to_string(held_out) + " images for validation; " +
                      halves.train->info().name + " has only " + std::to_string(records));
  }
  const Dataset all = Dataset::from(halves.train);
  return {
      .name = name,
      .train = batched(all.take(records - held_out).shuffle(), {.global = batch_size(options, batch)}, options),
      .validation = batched(all.skip(records - held_out), {.global = kEvaluationBatch}, options),
      .test = batched(Dataset::from(halves.test), {.global = kEvaluationBatch}, options),
      .net = named_net(name),
      .optimizer = adam(1e-3F),
      .epochs = 2};
}

Recipe mnist_recipe(const CommonOptions& options) { return grey_recipe("mnist-mlp", options, 10'000, 32); }

Recipe fashion_recipe(const CommonOptions& options) {
  Recipe recipe = grey_recipe("fashion-mnist", options, 5'000, 128);
  recipe.epochs = 4;
  recipe.optimizer = decaying_adam(2e-3F, options, recipe.epochs, recipe.train);
  return recipe;
}

// Decoded once into memory, then augmented every epoch; every tenth training image validates.
Recipe cifar_recipe(const CommonOptions& options) {
  static constexpr std::uint64_t kHeldOut = 10;
  const Halves halves = open_halves("cifar10-cnn", options);
  static constexpr int kEpochs = 8;
  const Dataset all = decoded_cifar(halves.train, options);
  const Dataset train = batched(
      all.without_shard(kHeldOut, 0).shuffle().map(pad_crop(32, 4) | flip() | normalize(kCifarMean, kCifarStd)),
      {.global = batch_size(options, 512)}, options);
  return {.name = "cifar10-cnn",
          .train = train,
          .validation = batched(all.shard(kHeldOut, 0).map(normalize(kCifarMean, kCifarStd)),
                                {.global = kEvaluationBatch}, options),
          .test = batched(decoded_cifar(halves.test, options).map(normalize(kCifarMean, kCifarStd)),
                          {.global = kEvaluationBatch}, options),
          .net = named_net("cifar10-cnn"),
          .optimizer = decaying_adam(4e-3F, options, kEpochs, train),
          .epochs = kEpochs};
}

// ResNet-18 in its CIFAR form.
Recipe resnet_recipe(const CommonOptions& options) {
  static constexpr int kEpochs = 24;
  static constexpr std::uint64_t kWarmupShare = 5;  // of the steps, one in so many
  const Halves halves = open_halves("cifar10-resnet18", options);
  const Dataset train =
      batched(decoded_cifar(halves.train, options)
                  .shuffle()
                  .map(pad_crop(32, 4, Padding::kReflect) | flip() | normalize(kCifarMean, kCifarStd)),
              {.global = batch_size(options, 512), .remainder = Remainder::kDrop}, options);
  const std::uint64_t epochs = options.epochs > 0 ? options.epochs : kEpochs;
  const std::uint64_t steps = epochs * train.steps_per_epoch();
  return {.name = "cifar10-resnet18",
          .train = train,
          .test = batched(decoded_cifar(halves.test, options).map(normalize(kCifarMean, kCifarStd)),
                          {.global = kEvaluationBatch}, options),
          .net = named_net("cifar10-resnet18"),
          .optimizer = sgd(
              Schedule::linear_decay({.peak = 0.2F, .warmup_steps = steps / kWarmupShare, .total_steps = steps}),
              {.momentum = 0.9F, .weight_decay = 5e-4F, .nesterov = true}),
          .epochs = kEpochs};
}

using Maker = Recipe (*)(const CommonOptions&);
constexpr std::array<std::pair<const char*, Maker>, 6> kRecipes = {{
    {"mnist-mlp", mnist_recipe},
    {"fashion-mnist", fashion_recipe},
    {"cifar10-cnn", cifar_recipe},
    {"cifar10-fast", cifar10_fast},
    {"cifar10-fast-b", cifar10_fast_b},
    {"cifar10-resnet18", resnet_recipe},
}};

}  // namespace

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const auto& [name, maker] : kRecipes) names.emplace_back(name);
  return names;
}

Recipe make_recipe(const std::string& name, const CommonOptions& options) {
  std::string known;
  for (const auto& [known_name, maker] : kRecipes) {
    if (name == known_name) return maker(options);
    known += (known.empty() ? "" : ", ") + std::string(known_name);
  }
  throw ConfigError("unknown recipe '" + name + "'", "there are: " + known);
}

}  // namespace headrace::tools
