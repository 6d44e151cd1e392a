#include "headrace/tools/recipe_data.h"

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
  return halves;
}

std::int64_t batch_size(const CommonOptions& options, std::int64_t usual) {
  return options.global_batch > 0 ? options.global_batch : usual;
}

Dataset batched(const Dataset& data, const BatchOptions& batch, const CommonOptions& options) {
  return data.batch(batch).prefetch(options.prefetch);
}

Dataset decoded_cifar(const SourcePtr& source, const CommonOptions& options) {
  const Fields& fields = source->info().fields;
  const Dataset data = Dataset::from(source);
  if (fields.at(find_field(fields, "image")).encoding != Encoding::kImage) return data;
  const auto cache = options.cache == "auto" ? memory() : options.open_cache();
  const Dataset decoded = data.decode({.height = 32, .width = 32});
  return cache == nullptr ? decoded : decoded.cache(cache);
}

}  // namespace headrace::tools
