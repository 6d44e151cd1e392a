#include "headrace/tools/recipe_data.h"

#include <fmt/format.h>

#include "headrace/devices/base/error.h"
#include "headrace/tools/data_options.h"
#include "headrace/tools/recipe_fit.h"

namespace headrace::tools {

Halves open_halves(const std::string& recipe, const CommonOptions& options) {
  if (options.data.empty()) throw ConfigError("no --data given", "name a folder or archive of images");
  const SourceOptions source{.layout = options.layout, .label_count = kClasses};
  Halves halves{.train = open_source(options.data, Split::kTrain, source)};
  require_fit(recipe, halves.train);
  halves.test = open_source(options.data, Split::kTest, source);
  report_left_out(halves.train->info().left_out);
  const Fields& fields = halves.train->info().fields;
  if (options.apply_orientation && fields.at(find_field(fields, "image")).encoding != Encoding::kImage) {
    throw ConfigError(halves.train->info().name + ": its images are raw pixels, which have no EXIF orientation",
                      "leave out --apply-orientation");
  }
  return halves;
}

std::int64_t batch_size(const CommonOptions& options, std::int64_t usual) {
  return options.global_batch > 0 ? options.global_batch : usual;
}

Dataset batched(const Dataset& data, const BatchOptions& batch, const CommonOptions& options) {
  const Dataset batches = data.batch(batch).prefetch(options.prefetch);
  if (batches.steps_per_epoch() > 0 || data.size() == 0) return batches;
  throw ConfigError(
      fmt::format(
          "a global batch of {} is never full: there are {} examples, and this recipe drops what fills none",
          batch.global, data.size()),
      fmt::format("give --global-batch {} or less", data.size()));
}

Dataset decoded_cifar(const SourcePtr& source, const CommonOptions& options) {
  const Fields& fields = source->info().fields;
  const Dataset data = Dataset::from(source);
  if (fields.at(find_field(fields, "image")).encoding != Encoding::kImage) return data;
  const auto cache = options.cache == "auto" ? memory() : options.open_cache();
  const Dataset decoded = data.decode({.height = 32, .width = 32, .apply_orientation = options.apply_orientation});
  return cache == nullptr ? decoded : decoded.cache(cache);
}

}  // namespace headrace::tools
