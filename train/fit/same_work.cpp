#include "headrace/train/fit/same_work.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string_view>
#include <vector>

#include "headrace/devices/base/hash.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/records/record.h"
#include "headrace/train/records/record_json.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

constexpr std::size_t kMaxShown = 200;  // longer texts are named by their hashes

std::string text_of(const DataIdentity& data) {
  std::string stages;
  for (const std::string& stage : data.stages) stages += stage + "; ";
  return fmt::format("{}fingerprint {}", stages, to_hex(data.fingerprint));
}

// Collects options under their readers' names.
class Options {
 public:
  template <typename Value>
  void add(std::string_view name, const Value& value) {
    values_.emplace_back(named_or(name, name.substr(name.rfind(':') + 1)), fmt::format("{}", value));
  }
  const NamedValues& values() const noexcept { return values_; }

 private:
  NamedValues values_;
};

const char* word_of(NanPolicy policy) {
  switch (policy) {
    case NanPolicy::kStop: return "stop";
    case NanPolicy::kIgnore: return "ignore";
    case NanPolicy::kTrace: return "trace";
  }
  return "";
}

void add_input(Options& same, const LoaderOptions& input) {
  same.add("LoaderOptions::seed", input.seed);
  same.add("LoaderOptions::headspace", input.headspace);
  same.add("ErrorPolicy::on_error", to_string(input.errors.on_error));
}

void add_checkpoints(Options& same, const FitOptions& options) {
  const CheckpointOptions files = options.checkpoints.value_or(CheckpointOptions{});
  same.add("FitOptions::checkpoints", !files.folder.empty());
  same.add("CheckpointOptions::record", !files.record.empty());
  same.add("CheckpointOptions::every_steps", files.every_steps);
  same.add("CheckpointOptions::best", files.best.empty() ? "none" : files.best);
  same.add("CheckpointOptions::best_mode", static_cast<int>(files.best_mode));
  same.add("FitOptions::resume", options.resume);
}

// Returns the steps of exact reports, for which all streams end: "every 10, 100".
std::string exact_steps(const std::vector<Callback>& callbacks) {
  std::set<std::uint64_t> every;
  for (const Callback& callback : callbacks) {
    if (callback.on_step && callback.every_steps > 0) every.insert(callback.every_steps);
  }
  return every.empty() ? "no step's" : fmt::format("every {}", fmt::join(every, ", "));
}

std::string same_callbacks(const std::vector<Callback>& callbacks) {
  std::string text;
  for (const Callback& callback : callbacks) {
    if (!callback.same.empty()) text += (text.empty() ? "" : ", ") + callback.same;
  }
  return text.empty() ? "none" : text;
}

// Returns what the bits of a device's results depend on: "AVX-512", "sm_90" (DeviceInfo::description).
std::string instruction_set(const Strategy& strategy) {
  const std::string& description = strategy.device(0).info().description;
  const std::size_t comma = description.rfind(", ");
  return comma == std::string::npos ? description : description.substr(comma + 2);
}

}  // namespace

void require_same_options(Workers& workers, const FitOptions& options) {
  Options same;
  same.add("FitOptions::epochs", options.epochs);
  same.add("FitOptions::steps_per_epoch", options.steps_per_epoch);
  same.add("FitOptions::stop_after_steps", options.stop_after_steps);
  same.add("FitOptions::validation", options.validation.has_value());
  same.add("FitOptions::validation_split", options.validation_split);
  same.add("FitOptions::validate_averaged", options.validate_averaged);
  same.add("FitOptions::class_weights", fmt::format("[{}]", fmt::join(options.class_weights, ", ")));
  same.add("StepOptions::accumulate", options.step.accumulate);
  same.add("StepOptions::virtual_shards", options.step.virtual_shards);
  same.add("StepOptions::nan", word_of(options.step.nan));
  same.add("StepOptions::mirror_check_every", options.step.mirror_check_every);
  same.add("StepOptions::gradient_norms", options.step.gradient_norms);
  add_input(same, options.input);
  add_checkpoints(same, options);
  same.add("FitOptions::callbacks", same_callbacks(options.callbacks));
  same.add("Callback::every_steps", exact_steps(options.callbacks));
  require_same(workers, "fit()", same.values());
}

void require_same_evaluation(Workers& workers, const Model& model, const Dataset& data,
                             const EvaluateOptions& options, Mode mode) {
  Options same;
  same.add("EvaluateOptions::steps", options.steps);
  same.add("EvaluateOptions::virtual_shards", options.virtual_shards);
  same.add("EvaluateOptions::averaged_weights", options.averaged_weights);
  same.add("EvaluateOptions::views", options.views.size());
  add_input(same, options.input);
  NamedValues values = same.values();
  values.emplace_back("data", text_of(identity_of(data)));
  values.emplace_back("variables", model.weights_sha256());
  require_same(workers, mode == Mode::kPredict ? "predict()" : "evaluate()", values);
}

void require_same_work(Workers& workers, const Model& model, const SharedWork& work) {
  NamedValues values{{"processors", instruction_set(model.strategy())},
                     {"data", text_of(work.data)},
                     {"validation", text_of(work.validation.value_or(DataIdentity{}))},
                     {"steps of an epoch", std::to_string(work.steps)}};
  for (const auto& [name, text] : model_texts(model.state(), {})) {
    const record_json::Json parts = record_json::parse(text);
    for (const auto& [part, value] : parts.items()) {
      values.emplace_back(fmt::format("model ({}, {})", name, part), value.dump());
    }
  }
  values.emplace_back("position", fmt::format("step {}, {}", model.global_step(), work.position.serialize()));
  values.emplace_back("variables", model.weights_sha256());
  for (auto& [name, value] : values) {
    if (value.size() > kMaxShown) value = "hash " + to_hex(xxh3(value));
  }
  require_same(workers, "the work of fit()", values);
}

}  // namespace headrace
