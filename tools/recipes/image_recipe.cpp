#include "headrace/tools/recipes/recipe.h"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/tools/pipelines/pipelines.h"
#include "headrace/tools/recipes/recipe_data.h"
#include "headrace/tools/recipes/recipes.h"

namespace headrace::tools {
namespace {

constexpr int kMinImageSize = 16, kMaxImageSize = 1024;
constexpr std::int64_t kSizeStep = 32;  // automatic sizes are multiples
constexpr std::int64_t kMinBatch = 4;
constexpr std::int64_t kMinSteps = 8;       // in an epoch, where the batch is the recipe's own choice
constexpr std::uint64_t kWarmupShare = 10;  // one step in so many
constexpr float kSmoothing = 0.1F;
constexpr float kGreyMean = 0.449F, kGreyStd = 0.226F;

// The share of a resized image's side that is cut from the middle, as in ImageNet's evaluations: 224 of 256.
int resized_side(int image_size) { return (image_size * 8 + 6) / 7; }

int image_size(const ImageRecipe& recipe, const RecipeOptions& options, const SourcePtr& source) {
  if (options.image_size > 0) {
    if (options.image_size >= kMinImageSize && options.image_size <= kMaxImageSize) return options.image_size;
    throw ConfigError(fmt::format("an image size of {}", options.image_size),
                      fmt::format("give {} to {}", kMinImageSize, kMaxImageSize));
  }
  const std::int64_t side = std::max<std::int64_t>(1, largest_side(source));
  const std::int64_t enough = (side + kSizeStep - 1) / kSizeStep * kSizeStep;
  return static_cast<int>(std::min<std::int64_t>(recipe.image_size, enough));
}

// Few images make smaller batches, so that an epoch has some steps.
std::int64_t batch_of(const ImageRecipe& recipe, const RecipeOptions& options, std::uint64_t images) {
  const std::int64_t enough = std::max(kMinBatch, static_cast<std::int64_t>(images) / kMinSteps);
  return batch_size(options, std::min(recipe.global_batch, enough));
}

Operations normalized(const Field& image) {
  const bool grey = image.encoding != Encoding::kImage && image.shape.back() == 1;
  return grey ? normalize({kGreyMean}, {kGreyStd}) : normalize(kImagenetMean, kImagenetStd);
}

// Decoded if the source holds encoded images, and kept only where the user says so: photographs in their own size
// take much memory.
Dataset decoded_photographs(Dataset images, const Field& image, const RecipeOptions& options) {
  if (image.encoding == Encoding::kImage) images = images.decode({.apply_orientation = options.apply_orientation});
  const std::shared_ptr<SampleCache> cache = options.open_cache ? options.open_cache() : nullptr;
  return cache ? images.cache(cache) : images;
}

void check_options(const ImageRecipe& recipe, const RecipeOptions& options, const Field& image) {
  if (!options.pretrained.empty() && !recipe.pretrained) {
    throw ConfigError(
        fmt::format("recipe {} has a net of its own, for which there are no pretrained weights", recipe.name),
        "train images-resnet18, or leave the weights out");
  }
  if (options.apply_orientation && image.encoding != Encoding::kImage) {
    throw ConfigError("the images are raw pixels, which have no EXIF orientation",
                      advice("leave out {}", named("RecipeOptions::apply_orientation")));
  }
}

Schedule schedule_of(const ImageRecipe& recipe, const RecipeOptions& options, std::int64_t examples,
                     std::uint64_t steps) {
  float peak = options.pretrained.empty() ? recipe.rate : recipe.pretrained_rate;
  if (recipe.rate_batch > 0) peak *= static_cast<float>(examples) / static_cast<float>(recipe.rate_batch);
  return Schedule::cosine_decay({.peak = peak, .warmup_steps = steps / kWarmupShare, .total_steps = steps});
}

}  // namespace

Recipe make_image_recipe(const ImageRecipe& recipe, const RecipeOptions& options) {
  ImageData data = image_data(recipe.name, options);
  const Fields& fields = data.source->info().fields;
  const Field& image = fields.at(find_field(fields, "image"));
  check_options(recipe, options, image);
  const int size = image_size(recipe, options, data.source);
  const Operations normal = normalized(image);
  const std::int64_t batch = batch_of(recipe, options, data.train.size());
  const bool drop_remainder = data.train.size() >= static_cast<std::uint64_t>(batch);
  const Dataset train =
      batched(decoded_photographs(data.train, image, options)
                  .shuffle()
                  .map(random_resized_crop({.size = size, .area = {recipe.min_area, 1}}) | flip() | normal),
              {.global_batch = batch, .drop_remainder = drop_remainder}, options);
  const auto evaluated = [&](const Dataset& images) {
    return batched(
        decoded_photographs(images, image, options).map(resize(resized_side(size)) | center_crop(size) | normal),
        {.global_batch = std::max(batch, recipe.global_batch)}, options);
  };
  FitOptions fit = fit_of(options, options.pretrained.empty() ? recipe.epochs : recipe.pretrained_epochs);
  const Dataset test = evaluated(data.test);
  fit.validation = data.test.plan() == data.validation.plan() ? test : evaluated(data.validation);
  const std::uint64_t steps = steps_of_fit(train, fit);
  data.notes.insert(data.notes.begin(), fmt::format("Images: {0} x {0} pixels, {1} classes", size, data.classes));
  return {.name = recipe.name,
          .global_batch = batch,
          .train = train,
          .fit = fit,
          .test = test,
          .net = [net = recipe.net, classes = static_cast<int>(data.classes)](
                     Graph& graph) { return net(graph, {.classes = classes}); },
          .optimizer = recipe.optimizer(schedule_of(recipe, options, batch * fit.step.accumulate, steps)),
          .loss = sparse_categorical_crossentropy({.label_smoothing = kSmoothing}),
          .pretrained = options.pretrained,
          .notes = data.notes};
}

// `images-small`: a small net for photographs that a laptop trains in minutes.

ImageRecipe images_small_settings() {
  return {.name = "images-small",
          .net = small_image_cnn,
          .image_size = 96,
          .global_batch = 32,
          .epochs = 20,
          .min_area = 0.35F,
          .rate = 2e-3F,
          .optimizer = [](const Schedule& rate) { return adamw(rate); }};
}

Recipe images_small_recipe(const RecipeOptions& options) {
  return make_image_recipe(images_small_settings(), options);
}

// `images-resnet18`: ResNet-18 in its ImageNet form, from the start or from pretrained weights.

ImageRecipe images_resnet18_settings() {
  return {.name = "images-resnet18",
          .net = resnet18_imagenet,
          .pretrained = true,
          .image_size = 224,
          .global_batch = 128,
          .epochs = 60,
          .pretrained_epochs = 10,
          .rate = 0.1F,
          .pretrained_rate = 0.02F,
          .rate_batch = 256,
          .optimizer = [](const Schedule& rate) {
            return sgd(rate, {.momentum = 0.9F, .weight_decay = 1e-4F, .nesterov = true});
          }};
}

Recipe images_resnet18_recipe(const RecipeOptions& options) {
  return make_image_recipe(images_resnet18_settings(), options);
}

}  // namespace headrace::tools
