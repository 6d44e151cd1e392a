#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/sizes.h"
#include "headrace/train/fit/options_of_fit.h"
#include "headrace/train/fit_options.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/step/shards.h"

namespace headrace {
namespace {

// Rejects loader options that the trainer decides.
void refuse_decided(const LoaderOptions& input) {
  const LoaderOptions unset;
  const auto refuse = [](bool set, const std::string& option, const std::string& hint) {
    if (set) throw ConfigError(option + " is set for the input, but the trainer decides it", hint);
  };
  refuse(input.epochs != unset.epochs, named("LoaderOptions::epochs"),
         joined({"leave it alone", advice("{} says how long to train", named("FitOptions::epochs"))}, "; "));
  refuse(input.start.has_value(), named("LoaderOptions::start"),
         "leave it out: training and evaluation begin at the start of the data");
  refuse(input.world != unset.world, named("LoaderOptions::world"),
         "leave it out: the strategy knows which replicas this process has");
  refuse(input.even_shares != unset.even_shares, named("LoaderOptions::even_shares"),
         "leave it out: every example counts once, whatever the replicas' shares");
  refuse(input.converted != unset.converted, named("LoaderOptions::converted"),
         "leave it out: it follows from the model's precision");
  refuse(
      input.trace_spans != unset.trace_spans, named("LoaderOptions::trace_spans"),
      joined({"leave it out", advice("{} keeps the spans of a training", named("LoaderOptions::trace"))}, ": "));
}

}  // namespace

LoaderOptions training_input(const ModelState& model, const FitOptions& options, std::uint64_t passes,
                             const std::optional<LoaderState>& start) {
  refuse_decided(options.input);
  LoaderOptions input = options.input;
  input.start = start;
  input.epochs = passes;
  input.world = Shards(*model.strategy, options.step.virtual_shards).world();
  input.converted = converted_type(model, Mode::kTrain);
  input.in_bursts = model.strategy->devices().in_host_memory();
  input.empty_batches = true;  // steps are counted
  return input;
}

LoaderOptions validation_input(const ModelState& model, const FitOptions& options,
                               const std::optional<LoaderState>& start) {
  LoaderOptions input = training_input(model, options, static_cast<std::uint64_t>(options.epochs), start);
  input.converted = converted_type(model, Mode::kEvaluate);
  if (input.resident == Residency::kAlways) input.resident = Residency::kAuto;
  input.trace = nullptr;
  input.in_order = true;  // sums depend on the order
  return input;
}

LoaderOptions evaluation_input(const ModelState& model, Mode mode, const EvaluateOptions& options) {
  refuse_decided(options.input);
  if (options.input.headspace > 0) {
    throw ConfigError(named("LoaderOptions::headspace") + " is set, but an evaluation reads its data",
                      "leave it out; headspace measures training");
  }
  if (!options.input.in_order) {
    throw ConfigError(named("LoaderOptions::in_order", "false") +
                          " is set, but an evaluation's sums and results follow the order of the batches",
                      "leave it out; it is for training");
  }
  LoaderOptions input = options.input;
  const int virtual_shards = mode == Mode::kPredict ? 0 : options.virtual_shards;  // only sums need them
  input.world = Shards(*model.strategy, virtual_shards).world();
  input.converted = converted_type(model, mode);
  input.in_bursts = model.strategy->devices().in_host_memory();
  input.empty_batches = true;
  return input;
}

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

ClassWeighting::ClassWeighting(Model& model, const std::vector<float>& weights)
    : model_(model.state()), compilation_(model.state().compilations) {
  if (weights.empty()) return;
  const Loss& loss = model_.require_compiled("class weights").loss;
  if (loss.terms.size() > 1) {
    throw ConfigError("class weights are given to a fit, but the model's loss has several terms",
                      "give each term of the loss its class weights in compile()");
  }
  Loss weighted = loss.class_weighted(weights);
  before_ = std::exchange(model_.compiled->loss, std::move(weighted));
}

ClassWeighting::~ClassWeighting() {
  if (before_ && model_.compilations == compilation_) model_.compiled->loss = *before_;
}

}  // namespace headrace
