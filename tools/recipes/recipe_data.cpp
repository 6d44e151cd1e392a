#include "headrace/tools/recipes/recipe_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/inspect.h"

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

namespace {

constexpr std::uint64_t kSizesExamined = 16;

// One more than the largest label. Bad records have none.
std::uint64_t counted_classes(const Source& source, std::size_t field) {
  std::vector<std::byte> scratch;
  std::int64_t max = -1;
  for (std::uint64_t record = 0; record < source.info().records; ++record) {
    try {
      max = std::max(max, read_label(source, record, field, scratch));
    } catch (const DataError&) {
      continue;  // the training's error policy decides what becomes of it
    }
  }
  return static_cast<std::uint64_t>(max + 1);
}

// What a format without a test split says, unless the user named the split's folder.
struct TestSplit {
  SourcePtr source = {};
  std::string why_not = {};
};
TestSplit open_test(const RecipeOptions& options, std::uint64_t classes) {
  try {
    return {.source = open_split(options, Split::kTest, classes)};
  } catch (const ConfigError& error) {
    if (!options.layout.test_folder.empty()) throw;
    return {.why_not = error.message()};
  } catch (const DataError& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    return {.why_not = error.message()};
  }
}

// Returns k, if every k-th record validates. Throws ConfigError if nothing is left to train on.
std::uint64_t held_out(const std::string& recipe, double share, const Source& source) {
  if (!(share > 0 && share <= 0.5)) {
    throw ConfigError(fmt::format("a validation split of {} is no part of the data", share),
                      advice("give {} a share of up to 0.5", named("RecipeOptions::validation_split")));
  }
  const std::uint64_t records = source.info().records;
  if (records < 2) {
    throw ConfigError(fmt::format("recipe {} holds out images for validation; {} has only {}", recipe,
                                  source.info().name, count_of(records, "image")),
                      "give data with more images");
  }
  return static_cast<std::uint64_t>(std::round(std::min(1 / share, static_cast<double>(records))));
}

// "validation: 1 image in 10 of the train split, 68 images"
std::string held_out_note(const Dataset& validation, std::uint64_t one_in) {
  return fmt::format("Validation: 1 image in {} of the train split, {}", one_in,
                     count_of(validation.size(), "image"));
}

}  // namespace

std::uint64_t class_count(const Source& source) {
  const SourceInfo& info = source.info();
  const std::size_t field = find_field(info.fields, kLabelField);
  if (info.fields.at(field).dtype != DType::kI64) {
    throw ConfigError(info.name + ": its labels are numbers to predict, no classes",
                      "recipes classify; for regression write a custom net in C++ or Python");
  }
  if (!info.classes.empty()) return info.classes.size();
  return info.label_count > 0 ? info.label_count : counted_classes(source, field);
}

ImageData image_data(const std::string& recipe, const RecipeOptions& options) {
  SourcePtr source = options.train ? options.train : open_split(options, Split::kTrain, 0);
  const std::uint64_t classes = class_count(*source);
  if (source->info().classes.empty() && source->info().label_count != classes) {
    source = open_split(options, Split::kTrain, classes);
  }
  const TestSplit test = open_test(options, classes);
  const Dataset all = Dataset::from(source);
  ImageData data{.source = source, .classes = classes, .train = all, .validation = all, .test = all};
  if (test.source && options.validation_split == 0) {
    data.test = data.validation = Dataset::from(test.source);
    return data;
  }
  const double share = options.validation_split > 0 ? options.validation_split : kValidationShare;
  const std::uint64_t one_in = held_out(recipe, share, *source);
  data.train = all.without_shard(one_in, 0);
  data.validation = data.test = all.shard(one_in, 0);
  data.notes.push_back(held_out_note(data.validation, one_in));
  if (test.source) {
    data.test = Dataset::from(test.source);
  } else {
    data.notes.push_back(fmt::format("Test: the validation images, too; {}", test.why_not));
  }
  return data;
}

bool has_test_split(const RecipeOptions& options) { return open_test(options, 0).source != nullptr; }

std::int64_t largest_side(const SourcePtr& source) {
  const Fields& fields = source->info().fields;
  const Field& image = fields.at(find_field(fields, "image"));
  if (image.encoding != Encoding::kImage) return std::max(image.shape[0], image.shape[1]);
  const Inspection found = inspect_source(source, {.max_examined = kSizesExamined});
  return std::max(found.height.max, found.width.max);
}

}  // namespace headrace::tools
