#include "headrace/tools/cifar10_fast.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/registry.h"
#include "headrace/pipeline/loader.h"
#include "headrace/tools/recipe_data.h"
#include "headrace/train/nets.h"
#include "headrace/train/speed_optimizer.h"
#include "headrace/train/strategy.h"
#include "headrace/train/whitening.h"

namespace headrace::tools {
namespace {

constexpr std::int64_t kTestBatch = 1000;

// What the two recipes differ in.
struct SpeedRecipe {
  std::string name;
  int epochs = 8;
  std::uint64_t epoch_parts = 1, parts_of_pass = 1;  // an epoch is so many parts of a pass over the data
  double whitening_passes = 3;                       // in which the whitening's bias is trained
  std::uint64_t whitening_images = 5000;
  float label_smoothing = 0.2F;
  Operations augmentation;               // ends with normalised images
  SpeedOptimizerOptions optimizer = {};  // its batch is the recipe's, its steps follow from the epochs
};

Operations normal() { return normalize(kCifarMean, kCifarStd); }
Operations crop_and_flip() { return pad_crop(32, 2, Padding::kReflect) | alternating_flip(); }

// Fewer images, more steps, brighter and darker ones, SiLU; norms scaled ever more rarely. 9 x 27 steps of 1536
// images in 7.59 passes.
SpeedRecipe recipe_b() {
  return {.name = "cifar10-fast-b",
          .epochs = 9,
          .epoch_parts = 27,
          .parts_of_pass = 32,
          .whitening_passes = 0.19,
          .whitening_images = 960,
          .label_smoothing = 0.09F,
          .augmentation =
              crop_and_flip() | normal() | brightness_contrast({.brightness = 0.1399F, .contrast = 0.1308F}),
          .optimizer = kSpeedOptimizerB};
}

// Reads everything once: decoded samples are in the cache afterwards.
void read_all(const Dataset& data, const CommonOptions& options) {
  DeviceGroup host = open_devices("cpu:1");
  LoaderOptions loader_options;
  loader_options.threads = options.threads;
  loader_options.errors = options.errors.policy();
  Loader loader(data.batch({.global = kTestBatch}), host, loader_options);
  while (loader.next()) continue;
}

std::uint64_t share_of(std::uint64_t steps, std::uint64_t parts, std::uint64_t whole) {
  return std::max<std::uint64_t>(1, (steps * parts + whole - 1) / whole);
}

// For `steps` updates of `batch` images, `pass` of which are a pass over the data.
SpeedOptimizerOptions optimizer_of(const SpeedRecipe& recipe, std::int64_t batch, std::uint64_t steps,
                                   std::uint64_t pass) {
  SpeedOptimizerOptions options = recipe.optimizer;
  options.global_batch = batch;
  options.steps = steps;
  options.whitening_steps =
      static_cast<std::uint64_t>(std::ceil(recipe.whitening_passes * static_cast<double>(pass)));
  return options;
}

Recipe make(const SpeedRecipe& recipe, const CommonOptions& options) {
  const Halves halves = open_halves(recipe.name, options);
  const Dataset all = decoded_cifar(halves.train, options);
  const Dataset test = decoded_cifar(halves.test, options);
  const std::int64_t batch = batch_size(options, recipe.optimizer.global_batch);
  const Dataset train =
      batched(all.shuffle().map(recipe.augmentation), {.global = batch, .remainder = Remainder::kDrop}, options);
  const std::uint64_t pass = train.steps_per_epoch();
  const std::uint64_t epoch = share_of(pass, recipe.epoch_parts, recipe.parts_of_pass);
  const std::uint64_t epochs = options.epochs > 0 ? options.epochs : static_cast<std::uint64_t>(recipe.epochs);
  const Dataset first = all.take(std::min(recipe.whitening_images, all.size())).map(normal());
  const auto images = std::make_shared<ImageBlock>();
  return {.name = recipe.name,
          .train = train,
          .test = batched(test.map(normal()), {.global = kTestBatch}, options),
          .net = named_net(recipe.name),
          .optimizer = cifar10_speed_optimizer(optimizer_of(recipe, batch, epochs * epoch, pass)),
          .epochs = recipe.epochs,
          .steps_per_epoch = epoch == pass ? 0 : epoch,
          .loss = sparse_categorical_crossentropy(
              {.label_smoothing = recipe.label_smoothing, .reduction = Reduction::kSum}),
          .views = mirrored_and_shifted_views(),
          .load =
              [=] {
                if (options.cache != "none") read_all(all, options);
                if (options.cache != "none") read_all(test, options);
                *images = read_images(first.batch({.global = kTestBatch}));
              },
          .initialise =
              [=](Model& model) {
                model.write_variable("whiten/weights", whitening_filters(*images, model.strategy().device(0)));
              }};
}

}  // namespace

Recipe cifar10_fast(const CommonOptions& options) {
  return make({.name = "cifar10-fast", .augmentation = crop_and_flip() | normal()}, options);
}

Recipe cifar10_fast_b(const CommonOptions& options) { return make(recipe_b(), options); }

}  // namespace headrace::tools
