#include "headrace/tools/recipes/recipe_data.h"

#include <fmt/format.h>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"

namespace headrace::tools {
namespace {

bool is_encoded(const Source& source) {
  const Fields& fields = source.info().fields;
  return fields.at(find_field(fields, "image")).encoding == Encoding::kImage;
}

// What a recipe for images of one size cannot honour.
void refuse_image_options(const std::string& recipe, const RecipeOptions& options) {
  const auto refuse = [&](const char* what, const std::string& option) {
    throw ConfigError(fmt::format("recipe {} has {} of its own", recipe, what),
                      advice("leave out {}, or train images-small or images-resnet18", option));
  };
  if (options.image_size != 0) refuse("an image size", named("RecipeOptions::image_size"));
  if (options.validation_split != 0) refuse("a validation split", named("RecipeOptions::validation_split"));
  if (!options.pretrained.empty()) refuse("first values", named("RecipeOptions::pretrained"));
}

}  // namespace

SourcePtr open_split(const RecipeOptions& options, Split split, std::uint64_t label_count) {
  if (options.data.empty()) {
    throw ConfigError(fmt::format("no {} given", named_or("RecipeOptions::data", "data")),
                      "name a folder or archive of images");
  }
  return open_source(options.data, split,
                     {.layout = options.layout, .label_count = label_count, .columns = options.columns});
}

Splits open_splits(const std::string& recipe, const RecipeOptions& options) {
  refuse_image_options(recipe, options);
  Splits splits{.train = options.train ? options.train : open_split(options, Split::kTrain, kClasses),
                .test = open_split(options, Split::kTest, kClasses)};
  if (options.apply_orientation && !is_encoded(*splits.train)) {
    throw ConfigError(splits.train->info().name + ": its images are raw pixels, which have no EXIF orientation",
                      advice("leave out {}", named("RecipeOptions::apply_orientation")));
  }
  return splits;
}

RecipeImages images_of(const SourcePtr& source, std::int64_t side, const RecipeOptions& options) {
  const bool encoded = is_encoded(*source);
  Dataset images = Dataset::from(source);
  if (encoded) {
    images = images.decode({.height = side, .width = side, .apply_orientation = options.apply_orientation});
  }
  std::shared_ptr<SampleCache> cache = encoded ? memory() : nullptr;
  if (options.open_cache) cache = options.open_cache();
  if (cache == nullptr) return {.dataset = images};
  return {.dataset = images.cache(cache), .cached = true};
}

std::int64_t batch_size(const RecipeOptions& options, std::int64_t usual) {
  return options.global_batch > 0 ? options.global_batch : usual;
}

Dataset batched(const Dataset& data, const BatchOptions& batch, const RecipeOptions& options) {
  const Dataset batches = data.batch(batch).prefetch(options.prefetch);
  if (batches.steps_per_epoch() > 0 || data.size() == 0) return batches;
  throw ConfigError(
      fmt::format(
          "a global batch of {} is never full: there are {} examples, and this recipe drops what fills none",
          batch.global_batch, data.size()),
      fmt::format("give {} or less", named("BatchOptions::global_batch", std::to_string(data.size()))));
}

FitOptions fit_of(const RecipeOptions& options, int usual_epochs) {
  return {.epochs = options.epochs > 0 ? options.epochs : usual_epochs,
          .steps_per_epoch = options.steps_per_epoch,
          .input = options.input,
          .step = {.accumulate = options.accumulate}};
}

LoaderOptions host_input(const RecipeOptions& options) {
  LoaderOptions input = options.input;
  input.convert = ConvertAt::kAuto;
  input.resident = Residency::kNever;
  input.headspace = 0;
  input.trace = nullptr;
  return input;
}

}  // namespace headrace::tools
