#include "headrace/tools/recipes/grey_images.h"

#include "headrace/devices/base/error.h"
#include "headrace/tools/recipes/recipe_data.h"

namespace headrace::tools {
namespace {

constexpr std::int64_t kGreySide = 28;

}  // namespace

GreyImages grey_images(const std::string& recipe, const RecipeOptions& options, std::uint64_t held_out,
                       std::int64_t batch) {
  const Splits splits = open_splits(recipe, options);
  const std::uint64_t records = splits.train->info().records;
  if (records <= held_out) {
    throw ConfigError("recipe " + recipe + " holds out " + std::to_string(held_out) + " images for validation; " +
                          splits.train->info().name + " has only " + std::to_string(records),
                      "give data with more images");
  }
  const Dataset all = images_of(splits.train, kGreySide, options).dataset;
  const Dataset test = images_of(splits.test, kGreySide, options).dataset;
  return {.train = batched(all.take(records - held_out).shuffle(), {.global_batch = batch}, options),
          .validation = batched(all.skip(records - held_out), {.global_batch = kEvaluationBatch}, options),
          .test = batched(test, {.global_batch = kEvaluationBatch}, options)};
}

}  // namespace headrace::tools
