#include "headrace/train/fit_options.h"

#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/sizes.h"
#include "headrace/train/fit/validation_split.h"

namespace headrace {

std::optional<HeldOut> split_of_fit(const Dataset& data, const FitOptions& options) {
  if (options.validation_split == 0) return std::nullopt;
  if (options.validation) {
    throw ConfigError("a fit has both a validation set and a validation split", "leave one of them out");
  }
  return hold_out_last(data, options.validation_split);
}

std::uint64_t steps_of_pass(const Dataset& train, const FitOptions& options) {
  if (options.step.accumulate < 1) {
    throw ConfigError("accumulate must be at least 1, got " + std::to_string(options.step.accumulate));
  }
  if (train.streamed()) {
    throw ConfigError("the training data is a stream of unknown length",
                      advice("set {}", named("FitOptions::steps_per_epoch")));
  }
  const std::optional<HeldOut> split = split_of_fit(train, options);
  const std::uint64_t batches = (split ? split->train : train).steps_per_epoch();
  if (batches == 0)
    throw ConfigError("the training data gives no batch", "keep the remainder, or use smaller batches");
  const auto group = static_cast<std::uint64_t>(options.step.accumulate);
  return (batches + group - 1) / group;
}

std::uint64_t steps_of_epoch(const Dataset& train, const FitOptions& options) {
  return options.steps_per_epoch > 0 ? options.steps_per_epoch : steps_of_pass(train, options);
}

std::uint64_t steps_of_fit(const Dataset& train, const FitOptions& options) {
  if (options.epochs < 1) throw ConfigError("fit needs at least one epoch, got " + std::to_string(options.epochs));
  const std::uint64_t epoch = steps_of_epoch(train, options);
  const auto steps = checked_product({static_cast<std::uint64_t>(options.epochs), epoch});
  if (steps) return *steps;
  throw ConfigError(named("FitOptions::epochs", std::to_string(options.epochs)) + " of " + std::to_string(epoch) +
                        " steps are more steps than can be counted",
                    "train for fewer epochs, or for fewer steps in each");
}

}  // namespace headrace
