#include "headrace/tools/runs/recipe_run.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/tools/output/print.h"
#include "headrace/tools/runs/run_folder.h"
#include "headrace/train/strategy.h"

namespace headrace::tools {

RecipeRun::RecipeRun(const Recipe& recipe, Model& model, const FitOptions& fit, const EvaluateOptions& test)
    : recipe_(recipe), model_(model), fit_options_(fit), test_options_(test) {
  if (recipe.load) recipe.load();
  fit_.emplace(model, recipe.train, fit);
  if (recipe.initialise) initialise_ = recipe.initialise(model);
  if (!model.strategy().device(0).info().host_memory) warm_up();
}

void RecipeRun::warm_up() {
  test_.emplace(model_, recipe_.test, test_options_);
  fit_->warm_up();
  test_->warm_up();
  if (initialise_) initialise_();
}

RecipeRun::Result RecipeRun::run() {
  const Stopwatch clock;
  if (initialise_) initialise_();
  try {
    fit_->run();
  } catch (const WorkerInterrupted&) {  // as all say now
  }
  require_not_stopped();
  const Evaluation test = evaluate();
  return {.test = test, .seconds = clock.seconds()};
}

// Of several workers, each may be told to stop.
void RecipeRun::require_not_stopped() const {
  const bool mine = fit_options_.stop != nullptr && *fit_options_.stop;
  const std::string when = fmt::format("after step {}", model_.global_step());
  const auto& workers = model_.strategy().workers();
  std::vector<std::string> all{mine ? "stop" : ""};
  if (workers) all = workers->all_gather(all.front(), "the end of the training");
  if (mine) throw Error(ErrorCode::kCancelled, "interrupted " + when);
  const auto first = std::ranges::find(all, "stop");
  if (first == all.end()) return;
  const int rank = static_cast<int>(first - all.begin());
  throw WorkerInterrupted(fmt::format("{} was interrupted {}", workers->at(rank).to_string(rank), when));
}

Evaluation RecipeRun::evaluate() {
  if (!test_) {
    fit_.reset();  // a laptop has not the memory for both
    test_.emplace(model_, recipe_.test, test_options_);
  }
  try {
    return test_->evaluate();
  } catch (const WorkerInterrupted&) {
    throw;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCancelled) throw;
    throw Error(ErrorCode::kCancelled,
                "interrupted during the test after step " + std::to_string(model_.global_step()));
  }
}

namespace {

nlohmann::ordered_json worker_line(std::size_t rank, const StepTimes& times) {
  nlohmann::ordered_json line = {{"worker", rank},
                                 {"input_stall_fraction", times.input_stall_fraction()},
                                 {"exposed_copy_fraction", times.exposed_copy_fraction()},
                                 {"device_idle_fraction", times.device_idle_fraction()},
                                 {"sync_wait_fraction", times.sync_wait_fraction()}};
  if (times.sums_ns > 0) line["hidden_sum_fraction"] = times.hidden_sum_fraction();
  return line;
}

nlohmann::ordered_json epoch_line(const EpochReport& report) {
  nlohmann::ordered_json line = {{"epoch", report.epoch + 1},
                                 {"steps", report.steps},
                                 {"planned_steps", report.planned_steps},
                                 {"seconds", report.seconds},
                                 {"examples_per_second", report.examples_per_second},
                                 {"input_stall_fraction", report.input_stall_fraction},
                                 {"exposed_copy_fraction", report.exposed_copy_fraction},
                                 {"device_idle_fraction", report.device_idle_fraction},
                                 {"host_us_per_step", report.host_us_per_step},
                                 {"loss", report.loss}};
  add_metrics(line, "", report.metrics);
  if (report.val_loss) line["val_loss"] = *report.val_loss;
  add_metrics(line, "val_", report.val_metrics);
  line["learning_rates"] = report.learning_rates;
  if (report.gradient_norms) line["gradient_norm"] = report.gradient_norms->all;
  if (report.bad_records > 0) line["bad_records"] = report.bad_records;
  for (std::size_t rank = 0; rank < report.workers.size(); ++rank) {
    line["workers"].push_back(worker_line(rank, report.workers[rank]));
  }
  return line;
}

constexpr double kSecondsBetweenNotes = 1, kSecondsBetweenFiles = 10;

// "2026-11-23T18:02:16Z"
std::string time_now() { return fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr))); }

std::string indented(const nlohmann::ordered_json& object) {
  return object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

TrainResults::TrainResults(const TrainTargets& targets) : json_(targets.json) {
  if (!targets.trace.empty()) trace_ = std::make_shared<FileWriter>(targets.trace);
  if (targets.run_dir.empty()) return;
  folder_.emplace(targets.run_dir);
  const std::filesystem::path& folder = folder_->path();
  if (folder != std::filesystem::path(targets.run_dir)) {
    print(text_output(), "{} holds a run already: this one goes to {}\n", targets.run_dir, folder);
  }
  history_.emplace((folder / kHistoryFile).string());
}

void TrainResults::describe(const Recipe& recipe, const Model& model, const nlohmann::ordered_json& run) {
  if (!folder_) return;
  const std::filesystem::path& folder = folder_->path();
  write_file_atomically(folder / kModelFile, model.summary());
  write_file_atomically(
      folder / kPlanFile,
      recipe.train.explain(model.strategy().devices(), recipe.fit.input.convert, recipe.fit.input.resident));
  if (!journal_) journal_.emplace(folder, run);
}

void TrainResults::attach(FitOptions& fit) {
  if (journal_) journal_->attach(fit);
}

void TrainResults::write_earlier(const History& history) {
  for (std::size_t epoch = 0; epoch < history.epochs(); ++epoch) {
    nlohmann::ordered_json line{{"epoch", epoch + 1}};
    for (const auto& [name, values] : history.lists()) {
      if (epoch < values.size()) line[name] = values[epoch];
    }
    line["steps"] = static_cast<std::uint64_t>(history["steps"][epoch]);
    write(line);
  }
}

void TrainResults::write_epoch(const EpochReport& report) { write(epoch_line(report)); }

void TrainResults::write(const nlohmann::ordered_json& line) {
  json_.write(line);
  if (history_) history_->write(line);
}

void TrainResults::finish() {
  json_.finish();
  if (history_) history_->finish();
}

void TrainResults::end(const std::string& status, const std::string& reason,
                       const std::vector<std::string>& warnings) {
  if (!journal_) return;
  try {
    for (const std::string& warning : warnings) journal_->warn(warning);
    journal_->end(status, reason);
  } catch (const Error& error) {
    if (status == "finished") throw;
    print(stderr, "headrace: warning: the end of the run is not in its folder: {}\n", error.message());
  }
}

nlohmann::ordered_json final_line(const RecipeRun::Result& result, const Model& model) {
  const Strategy& strategy = model.strategy();
  nlohmann::ordered_json line = {{"final", true}, {"test_loss", result.test.loss}};
  add_metrics(line, "test_", result.test.metrics);
  line["weights_sha256"] = model.weights_sha256();
  line["replicas"] = strategy.world_replicas();
  line["devices"] = strategy.devices().to_string();
  line["steps"] = model.global_step();
  line["train_seconds"] = result.seconds;
  return line;
}

RunJournal::RunJournal(std::filesystem::path folder, nlohmann::ordered_json description)
    : folder_(std::move(folder)), run_(std::move(description)), timeline_(folder_ / kTimelineFile) {
  run_["headrace"] = HEADRACE_VERSION;
  run_["started"] = time_now();
  run_["warnings"] = nlohmann::ordered_json::array();
  write_run();
}

void RunJournal::attach(FitOptions& fit) {
  const int number = ++trainings_;
  fit.callbacks.push_back({.on_train_begin =
                               [this, number](FitControl&) {
                                 timeline_.begin_training(number);
                                 input_ = {};
                               },
                           .on_step =
                               [this](const StepReport& report, FitControl& control) {
                                 timeline_.step(report);
                                 note(control);
                               },
                           .on_epoch_end =
                               [this](const EpochReport& report, FitControl& control) {
                                 timeline_.end_epoch(report);
                                 input_.end_epoch(control.input_stats());
                               }});
}

void RunJournal::note(const FitControl& control) {
  if (since_noted_.seconds() < kSecondsBetweenNotes) return;
  since_noted_.restart();
  input_.note(control.input_stats());
  if (since_written_.seconds() < kSecondsBetweenFiles) return;
  since_written_.restart();
  write_input(Durability::kLater);
}

void RunJournal::warn(const std::string& text) { run_["warnings"].push_back(text); }

void RunJournal::end(const std::string& status, const std::string& reason) {
  timeline_.finish();
  write_input(Durability::kNow);
  run_["ended"] = time_now();
  run_["seconds"] = since_begin_.seconds();
  run_["status"] = status;
  if (!reason.empty()) run_["reason"] = reason;
  write_run();
}

void RunJournal::write_run() const { write_file_atomically(folder_ / kRunFile, indented(run_)); }

void RunJournal::write_input(Durability durability) {
  const nlohmann::ordered_json input = input_.to_json();
  if (input.is_null()) return;
  const std::string text = indented(input);
  write_file_atomically(folder_ / kInputFile, std::as_bytes(std::span(text)), durability);
}

}  // namespace headrace::tools
