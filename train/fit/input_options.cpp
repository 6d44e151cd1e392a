#include "headrace/train/fit/input_options.h"

#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
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

}  // namespace headrace
