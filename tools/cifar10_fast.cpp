#include "headrace/tools/cifar10_fast.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "headrace/devices/registry.h"
#include "headrace/pipeline/loader.h"
#include "headrace/tools/recipe_data.h"
#include "headrace/train/nets.h"
#include "headrace/train/speed_optimizer.h"
#include "headrace/train/strategy.h"
#include "headrace/train/whitening.h"

namespace headrace::tools {
namespace {

constexpr std::int64_t kBatch = 2000, kTestBatch = 1000;
constexpr int kEpochs = 8;
constexpr std::uint64_t kWhiteningEpochs = 3;  // in which the whitening's bias is trained
constexpr std::uint64_t kWhiteningImages = 5000;

// Reads everything once: decoded samples are in the cache afterwards.
void read_all(const Dataset& data, const CommonOptions& options) {
  DeviceGroup host = open_devices("cpu:1");
  LoaderOptions loader_options;
  loader_options.threads = options.threads;
  loader_options.errors = options.error_policy();
  Loader loader(data.batch({.global = kTestBatch}), host, loader_options);
  while (loader.next()) continue;
}

}  // namespace

Recipe cifar10_fast(const CommonOptions& options) {
  const Halves halves = open_halves(options);
  require_image("cifar10-fast", halves.train, {32, 32, 3});
  const Dataset all = decoded_cifar(halves.train, options);
  const Dataset test = decoded_cifar(halves.test, options);
  const Operations normal = normalize(kCifarMean, kCifarStd);
  const std::int64_t batch = batch_size(options, kBatch);
  const Dataset train =
      batched(all.shuffle().map(pad_crop(32, 2, Padding::kReflect) | alternating_flip() | normal),
              {.global = batch, .remainder = Remainder::kDrop}, options);
  const std::uint64_t epochs = options.epochs > 0 ? options.epochs : kEpochs, steps = train.steps_per_epoch();
  const Dataset first = all.take(std::min(kWhiteningImages, all.size())).map(normal);
  const auto images = std::make_shared<ImageBlock>();
  return {.name = "cifar10-fast",
          .train = train,
          .test = batched(test.map(normal), {.global = kTestBatch}, options),
          .net = named_net("cifar10-fast"),
          .optimizer = cifar10_speed_optimizer(
              {.global_batch = batch, .steps = epochs * steps, .whitening_steps = kWhiteningEpochs * steps}),
          .epochs = kEpochs,
          .loss = sparse_categorical_crossentropy({.label_smoothing = 0.2F, .reduction = Reduction::kSum}),
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

}  // namespace headrace::tools
