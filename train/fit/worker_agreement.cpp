#include "headrace/train/fit/worker_agreement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <ranges>
#include <set>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/hash.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/records/record.h"
#include "headrace/train/records/record_json.h"
#include "headrace/train/step/loop_checks.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

constexpr double kMeetEverySeconds = 1;
constexpr double kShortestStep = 1e-6;  // seconds; a clock may not have moved

}  // namespace

bool WorkerAgreement::agree(bool stop, bool interrupted, const std::string& state) {
  if (!several()) return stops_ = stop || interrupted;
  const double pace = since_.seconds() / static_cast<double>(std::max<std::uint64_t>(1, steps_));
  const nlohmann::json mine{
      {"stop", stop}, {"interrupted", interrupted}, {"seconds_per_step", pace}, {"state", state}};
  double slowest = kShortestStep;
  std::vector<std::string> states;
  stops_ = false;
  interrupted_ = std::nullopt;
  for (const std::string& said : workers_->all_gather(mine.dump(), "the steps' meeting")) {
    const nlohmann::json each = nlohmann::json::parse(said);
    const bool was_interrupted = each["interrupted"].get<bool>();
    if (was_interrupted && !interrupted_) interrupted_ = static_cast<int>(states.size());
    stops_ = stops_ || was_interrupted || each["stop"].get<bool>();
    slowest = std::max(slowest, each["seconds_per_step"].get<double>());
    states.push_back(each["state"]);
  }
  if (interrupted) interrupted_ = std::nullopt;
  require_equal_values("state", states);
  if (steps_ > 0) next_ = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(kMeetEverySeconds / slowest));
  steps_ = 0;
  since_.restart();
  return stops_;
}

void WorkerAgreement::require_uninterrupted(const std::string& outcome) const {
  if (!interrupted_) return;
  throw WorkerInterrupted(
      fmt::format("{} was interrupted: {}", workers_->at(*interrupted_).to_string(*interrupted_), outcome));
}

void tell_workers(const Strategy& strategy, const std::exception& error) noexcept {
  if (!strategy.workers()) return;
  const bool known =
      dynamic_cast<const WorkersDiffer*>(&error) != nullptr || dynamic_cast<const WorkerLost*>(&error) != nullptr;
  if (known) return;
  const auto* ours = dynamic_cast<const Error*>(&error);
  if (ours != nullptr && ours->code() == ErrorCode::kCancelled) return;  // all stop
  strategy.collective().abort(ours != nullptr ? ours->message() : error.what());
}

namespace {

// The first stage says where the data lie, which may be elsewhere on each host.
std::string words_of(const DataIdentity& data) {
  std::string stages;
  for (const std::string& stage : data.stages | std::views::drop(1)) stages += stage + "; ";
  return fmt::format("{}fingerprint {}", stages, to_hex(data.fingerprint));
}

void add_input(NamedValues& same, const LoaderOptions& input) {
  add_value(same, "LoaderOptions::seed", std::to_string(input.seed));
  add_value(same, "LoaderOptions::headspace", std::to_string(input.headspace));
  add_value(same, "ErrorPolicy::on_error", to_string(input.errors.on_error));
}

void add_checkpoints(NamedValues& same, const FitOptions& options) {
  const CheckpointOptions files = options.checkpoints.value_or(CheckpointOptions{});
  const char* kept = !files.record.empty() ? "a folder and a record" : "a folder";
  add_value(same, "FitOptions::checkpoints",
            !files.folder.empty()  ? kept
            : files.record.empty() ? "none"
                                   : "a record");
  add_value(same, "CheckpointOptions::every_steps", std::to_string(files.every_steps));
  add_value(same, "CheckpointOptions::best", files.best.empty() ? "none" : files.best);
  add_value(same, "CheckpointOptions::best_mode", std::to_string(static_cast<int>(files.best_mode)));
  add_value(same, "FitOptions::resume", options.resume ? "on" : "off");
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
  NamedValues same;
  add_value(same, "FitOptions::epochs", std::to_string(options.epochs));
  add_value(same, "FitOptions::steps_per_epoch", std::to_string(options.steps_per_epoch));
  add_value(same, "FitOptions::stop_after_steps", std::to_string(options.stop_after_steps));
  add_value(same, "FitOptions::validation", options.validation ? "given" : "none");
  add_value(same, "FitOptions::validation_split", fmt::format("{}", options.validation_split));
  add_value(same, "FitOptions::validate_averaged", options.validate_averaged ? "on" : "off");
  add_value(same, "FitOptions::class_weight", fmt::format("[{}]", fmt::join(options.class_weight, ", ")));
  const NamedValues step = same_values(options.step);
  same.insert(same.end(), step.begin(), step.end());
  add_input(same, options.input);
  add_checkpoints(same, options);
  add_value(same, "FitOptions::callbacks", same_callbacks(options.callbacks));
  add_value(same, "Callback::every_steps", exact_steps(options.callbacks));
  require_same(workers, "fit()", same);
}

void require_same_evaluation(Workers& workers, const Model& model, const Dataset& data,
                             const EvaluateOptions& options, Mode mode) {
  NamedValues same;
  add_value(same, "EvaluateOptions::steps", std::to_string(options.steps));
  add_value(same, "EvaluateOptions::virtual_shards", std::to_string(options.virtual_shards));
  add_value(same, "EvaluateOptions::averaged_weights", options.averaged_weights ? "on" : "off");
  add_value(same, "EvaluateOptions::views", std::to_string(options.views.size()));
  add_input(same, options.input);
  same.emplace_back("data", words_of(identity_of(data)));
  same.emplace_back("variables", model.weights_sha256());
  require_same(workers, mode == Mode::kPredict ? "predict()" : "evaluate()", same);
}

void require_same_work(Workers& workers, const Model& model, const SharedWork& work) {
  NamedValues values{{"processors", instruction_set(model.strategy())},
                     {"data", words_of(work.data)},
                     {"validation", words_of(work.validation.value_or(DataIdentity{}))},
                     {"steps of an epoch", std::to_string(work.steps)}};
  for (const auto& [name, text] : model_texts(model.state(), {})) {
    const record_json::Json parts = record_json::parse(text);
    for (const auto& [part, value] : parts.items()) {
      values.emplace_back(fmt::format("model ({}, {})", name, part), value.dump());
    }
  }
  values.emplace_back("position", fmt::format("step {}, {}", model.global_step(), work.position.serialize()));
  values.emplace_back("variables", model.weights_sha256());
  require_same(workers, "the work of fit()", values);
}

}  // namespace headrace
