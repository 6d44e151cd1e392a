// `cifar10-cnn`: five convolutions with batch norm and dropout. Every tenth training image validates.
#include "headrace/tools/pipelines/pipelines.h"
#include "headrace/tools/recipes/recipe_data.h"
#include "headrace/tools/recipes/recipes.h"
#include "headrace/train/nets.h"

namespace headrace::tools {

Recipe cifar10_cnn_recipe(const RecipeOptions& options) {
  static constexpr std::uint64_t kHeldOut = 10;
  const Splits splits = open_splits("cifar10-cnn", options);
  const Dataset all = images_of(splits.train, 32, options).dataset;
  const Dataset test = images_of(splits.test, 32, options).dataset;
  const Operations normal = normalize(kCifarMean, kCifarStd);
  const std::int64_t batch = batch_size(options, 512);
  const Dataset train = batched(all.without_shard(kHeldOut, 0).shuffle().map(pad_crop(32, 4) | flip() | normal),
                                {.global_batch = batch}, options);
  FitOptions fit = fit_of(options, 8);
  fit.validation = batched(all.shard(kHeldOut, 0).map(normal), {.global_batch = kEvaluationBatch}, options);
  return {.name = "cifar10-cnn",
          .global_batch = batch,
          .train = train,
          .fit = fit,
          .test = batched(test.map(normal), {.global_batch = kEvaluationBatch}, options),
          .net = cifar10_cnn,
          .optimizer = adam(Schedule::linear_decay({.peak = 4e-3F, .total_steps = steps_of_fit(train, fit)}))};
}

// `cifar10-resnet18`: ResNet-18 in its CIFAR form; nothing is held out.

Recipe cifar10_resnet18_recipe(const RecipeOptions& options) {
  static constexpr std::uint64_t kWarmupShare = 5;  // one step in so many
  const Splits splits = open_splits("cifar10-resnet18", options);
  const Operations normal = normalize(kCifarMean, kCifarStd);
  const std::int64_t batch = batch_size(options, 512);
  const Dataset train = batched(images_of(splits.train, 32, options)
                                    .dataset.shuffle()
                                    .map(pad_crop(32, 4, Padding::kReflect) | flip() | normal),
                                {.global_batch = batch, .drop_remainder = true}, options);
  const Dataset test = images_of(splits.test, 32, options).dataset.map(normal);
  const FitOptions fit = fit_of(options, 24);
  const std::uint64_t steps = steps_of_fit(train, fit);
  return {.name = "cifar10-resnet18",
          .global_batch = batch,
          .train = train,
          .fit = fit,
          .test = batched(test, {.global_batch = kEvaluationBatch}, options),
          .net = [](Graph& graph) { return resnet18(graph); },
          .optimizer = sgd(
              Schedule::linear_decay({.peak = 0.2F, .warmup_steps = steps / kWarmupShare, .total_steps = steps}),
              {.momentum = 0.9F, .weight_decay = 5e-4F, .nesterov = true})};
}

}  // namespace headrace::tools
