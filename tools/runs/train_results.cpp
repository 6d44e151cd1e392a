#include "headrace/tools/runs/train_results.h"

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/tools/output/metric_lines.h"
#include "headrace/tools/output/print.h"
#include "headrace/train/strategy.h"

namespace headrace::tools {
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

}  // namespace

TrainResults::TrainResults(const TrainTargets& targets) : json_(targets.json) {
  if (!targets.trace.empty()) trace_ = std::make_shared<FileWriter>(targets.trace);
  if (targets.run_dir.empty()) return;
  folder_.emplace(targets.run_dir);
  const std::filesystem::path& folder = folder_->path();
  if (folder != std::filesystem::path(targets.run_dir)) {
    print(people(), "{} holds a run already: this one goes to {}\n", targets.run_dir, folder);
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

}  // namespace headrace::tools
