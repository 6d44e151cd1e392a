// Reports from a running fit: history, times, epoch and step reports, and the callbacks that receive them. All
// callbacks run on the thread that called fit().
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/pipeline/stats.h"
#include "headrace/train/metrics.h"

namespace HEADRACE_API headrace {

// The history of a fit: one list per metric with one entry per epoch. Names: "loss", each metric that is a number
// ("accuracy"), the value of each term of a loss with several terms ("left_loss", see EpochReport::metrics),
// "val_loss", "val_accuracy" and so on, "steps", "seconds" (the whole epoch), "examples_per_second" (training
// alone), "input_stall_fraction", "exposed_copy_fraction", "device_idle_fraction", "learning_rate" (the
// optimizer's own rate after the epoch), and "gradient_norm" if it is known.
class History {
 public:
  // Returns the list with this name. Throws ConfigError listing the available names if there is none.
  const std::vector<double>& operator[](const std::string& name) const;
  bool has(const std::string& name) const { return lists_.contains(name); }
  const std::map<std::string, std::vector<double>>& lists() const noexcept { return lists_; }
  std::size_t epochs() const;

  void append(const std::string& name, double value) { lists_[name].push_back(value); }

 private:
  std::map<std::string, std::vector<double>> lists_;
};

// One of the lists that a fit's History will have.
struct HistoryList {
  std::string name = {};
  Better better = Better::kAuto;  // kAuto: nothing says it, as of "learning_rate" or a custom metric
};

// The time of training steps, measured by the devices' own clocks and summed over finished batches and over
// replicas. A replica's time runs from the end of one batch to the end of the next: the replica has nothing to do,
// waits for the batch to arrive, then works.
struct StepTimes {
  std::uint64_t batches = 0;  // global batches
  std::int64_t elapsed_ns = 0;
  std::int64_t input_stall_ns = 0;   // nothing to do: the host was waiting for the batch
  std::int64_t exposed_copy_ns = 0;  // the batch had been handed out but was still on its way to the device
  std::int64_t idle_ns = 0;          // nothing to do for any other reason: the host was late
  // Part of the work: waiting for other replicas to join a sum, or for sums that ran beside other work. CPU
  // replicas only; some steps ahead of the others.
  std::int64_t sync_wait_ns = 0;
  std::int64_t sums_ns = 0;   // sums over replicas that ran beside other work, with several workers on CPUs
  std::uint64_t host_ns = 0;  // of the submitting thread, without its waits; for submitted batches

  double input_stall_fraction() const noexcept { return share(input_stall_ns); }
  double exposed_copy_fraction() const noexcept { return share(exposed_copy_ns); }
  double sync_wait_fraction() const noexcept { return share(sync_wait_ns); }
  double device_idle_fraction() const noexcept { return share(idle_ns); }
  // Returns the share of `sums_ns` that did not hold up other work; 0 if there are none.
  double hidden_sum_fraction() const noexcept {
    if (sums_ns <= 0) return 0;
    return std::max(0.0, 1 - static_cast<double>(sync_wait_ns) / static_cast<double>(sums_ns));
  }

  // Adds another worker's time in the same batches.
  StepTimes& operator+=(const StepTimes& other) noexcept;

 private:
  double share(std::int64_t ns) const noexcept {
    return elapsed_ns > 0 ? static_cast<double>(ns) / static_cast<double>(elapsed_ns) : 0.0;
  }
};

class Model;

// The norm of a step's gradient as one vector, summed over batches and replicas before clipping, and the norm of
// each trained variable's gradient in layer order. Frozen variables are left out.
struct GradientNorms {
  double all = 0;
  std::vector<std::pair<std::string, double>> by_variable = {};  // "dense/weights"
};

struct StepReport {
  int epoch = 0;                  // zero-based
  std::uint64_t step = 0;         // optimizer steps submitted this epoch
  std::uint64_t steps = 0;        // in the whole epoch
  std::uint64_t global_step = 0;  // over all fits of the model
  double seconds = 0;             // since the epoch began
  double loss = 0, accuracy = 0;  // means over the epoch so far, a few steps behind; see Callback::every_steps
  double examples_per_second = 0;
  double input_stall_fraction = 0, exposed_copy_fraction = 0, device_idle_fraction = 0;  // as in EpochReport
  double remaining_seconds = 0;
  std::vector<MetricValue> metrics = {};    // as in EpochReport, for the same batches; tables: exact reports
  std::vector<double> learning_rates = {};  // see FitControl::learning_rates()
  // The last step's norms, with StepOptions::gradient_norms; in exact reports also if the optimizer limits the
  // norm, then only `all`, over the gradients that the limit counts.
  std::optional<GradientNorms> gradient_norms = std::nullopt;
  std::vector<StepTimes> local_replicas = {};  // where each replica's time went in this epoch, a few steps behind
  std::vector<StepTimes> workers = {};         // of several workers, by rank: the sums of their replicas' times
};

struct EpochReport {
  int epoch = 0;  // zero-based
  int epochs = 0;
  std::uint64_t steps = 0;          // optimizer steps made
  std::uint64_t planned_steps = 0;  // more than `steps` if the fit was stopped within the epoch
  std::uint64_t global_step = 0;
  double seconds = 0;             // including validation
  double loss = 0, accuracy = 0;  // accuracy is 0 if nothing counts it
  // Not set if the epoch was stopped.
  std::optional<double> val_loss = std::nullopt, val_accuracy = std::nullopt;
  double examples_per_second = 0;  // training alone
  // Shares of the devices' training time, a few steps behind: no batch was ready; a batch was handed out but still
  // being copied or converted; the host had not submitted the step.
  double input_stall_fraction = 0, exposed_copy_fraction = 0, device_idle_fraction = 0;
  double host_us_per_step = 0;    // of the submitting thread, without its waits
  std::uint64_t bad_records = 0;  // skipped or substituted, see ErrorPolicy; includes validation
  // The metrics of compile() in their order, then, for a loss of several terms, the value of each term without its
  // weight: "left_loss" for the output "left"; "left_mean_squared_error_loss" if that output has several terms.
  std::vector<MetricValue> metrics = {}, val_metrics = {};
  std::vector<double> learning_rates = {};                     // after the epoch, see FitControl::learning_rates()
  std::optional<GradientNorms> gradient_norms = std::nullopt;  // of the last step, as in exact StepReports
  std::vector<StepTimes> local_replicas = {};                  // where each replica's time went in training
  std::vector<StepTimes> workers = {};                         // as in StepReport
};

// Returns the values that History records for an epoch, with their names and in their order: "loss", the metrics
// that are numbers, "val_loss" and so on, "steps", "seconds" ...
std::vector<std::pair<std::string, double>> epoch_values(const EpochReport& report);

// Lets a callback act on the fit that called it.
class FitControl {
 public:
  explicit FitControl(Model& model, std::function<LoaderStats()> input = {}, std::vector<HistoryList> lists = {})
      : model_(&model), input_(std::move(input)), lists_(std::move(lists)) {}

  Model& model() const noexcept { return *model_; }
  // Returns the lists that the History will have, save for those of custom metrics whose value is no number.
  const std::vector<HistoryList>& lists() const noexcept { return lists_; }
  // Ends the fit after the current step (on_step) or epoch (on_epoch_end).
  void request_stop() noexcept { stop_ = true; }
  bool stop_requested() const noexcept { return stop_; }

  // Scales the learning rates of all groups, on top of their schedules, from the next step on. The scale belongs
  // to the model and is 1 after compile(). Throws ConfigError if `scale` is negative or not finite.
  void set_learning_rate_scale(double scale);
  double learning_rate_scale() const noexcept;
  // Returns the rates of the next step: the optimizer's own, then that of each of its groups, scale included.
  std::vector<double> learning_rates() const;

  // Returns what the input engine did for this epoch's training. Counting begins at the first step, which waits
  // for the engine to start or for a preceding validation, and runs until now, or until the last step once that is
  // done. Empty before the first step and while no fit is running.
  LoaderStats input_stats() const { return input_ ? input_() : LoaderStats(); }

 private:
  Model* model_;
  std::function<LoaderStats()> input_;
  std::vector<HistoryList> lists_;
  bool stop_ = false;
};

// Any of these may be empty. An exception thrown by a callback ends the fit and propagates to the caller of fit().
struct Callback {
  std::string name = {};  // under which the callback's state is saved
  std::function<void(FitControl&)> on_train_begin = {};
  std::function<void(int epoch, FitControl&)> on_epoch_begin = {};  // zero-based
  std::function<void(const StepReport&, FitControl&)> on_step = {};
  // 0: on_step is called when convenient, at most about ten times a second. Otherwise it is called after exactly
  // every this many optimizer steps of the model (StepReport::global_step). The fit first waits until they are
  // done, so that the report covers all of them, the model is in the reported state, and a requested stop ends the
  // fit there. The devices wait for the host meanwhile: small numbers cost time.
  std::uint64_t every_steps = 0;
  std::function<void(const EpochReport&, FitControl&)> on_epoch_end = {};
  std::function<void(FitControl&)> on_train_end = {};
  // Saves the callback's state as JSON text for a checkpoint; restore() is called before on_train_begin. Set both
  // or neither, and set a name.
  std::function<std::string()> save = {};
  std::function<void(const std::string&)> restore = {};
  // What must be the same on all workers, "early_stopping of val_loss, patience 3"; empty: nothing, as of a
  // callback that only looks.
  std::string same = {};
};

// Returns the callback for the chief alone, for what writes files: other workers call none of its functions except
// save() and restore(). All workers must have callbacks that want reports of the same steps, and those that change
// the training must come to the same result on each; the values of reports are the same on all, save for times.
Callback on_chief(Callback callback);

// --- ready-made callbacks; use each object for one fit at a time ---

// `monitor` is a name of History. A name that the fit's history will not have is a ConfigError when the fit
// begins, listing the names, and so is one of which nothing says which values are better, unless `mode` does. An
// epoch that was stopped and lacks it is skipped. A value that is not finite is never better.
struct EarlyStoppingOptions {
  std::string monitor = "val_loss";
  int patience = 0;
  double min_delta = 0;
  Better mode = Better::kAuto;
  bool restore_best_weights = false;

  void each_field(OptionVisitor& visit) {
    visit("monitor", monitor, "The list of the history that is watched.");
    visit("patience", patience, "Epochs without improvement after which the fit ends; 0 counts as 1.");
    visit("min_delta", min_delta, "By how much a value must be better to count as an improvement.");
    visit("mode", mode, "Which values are better; \"auto\": as the metric says.");
    visit("restore_best_weights", restore_best_weights,
          "Whether the variables of the best epoch are restored at the end, those of lookahead and the average "
          "included: a copy in host memory, which is also saved in checkpoints.");
  }
};
Callback early_stopping(const EarlyStoppingOptions& options = {});

struct ReduceLrOnPlateauOptions {
  std::string monitor = "val_loss";
  double factor = 0.1;
  int patience = 10;
  double min_delta = 1e-4;
  Better mode = Better::kAuto;
  int cooldown = 0;
  double min_scale = 0;

  void each_field(OptionVisitor& visit) {
    visit("monitor", monitor, "The list of the history that is watched.");
    visit("factor", factor, "What all learning rates are multiplied by, between 0 and 1.");
    visit("patience", patience, "Epochs without improvement after which the rates are reduced.");
    visit("min_delta", min_delta, "By how much a value must be better to count as an improvement.");
    visit("mode", mode, "Which values are better; \"auto\": as the metric says.");
    visit("cooldown", cooldown, "Epochs after a reduction before counting starts again.");
    visit("min_scale", min_scale, "The lower bound of the control's learning_rate_scale.");
  }
};
Callback reduce_lr_on_plateau(const ReduceLrOnPlateauOptions& options = {});

// Sets the optimizer's own rate to `rate(epoch)` at the start of each epoch (zero-based); groups keep their
// proportions to it. Throws ConfigError if the optimizer's own rate is not a constant above 0 (it has a schedule).
Callback learning_rate_scheduler(std::function<double(int epoch)> rate);

// Writes one line per epoch: its one-based number and History's values by name. Replaces the file when a fit
// begins; resumed from a checkpoint, keeps the lines of the earlier epochs. Only the chief writes.
Callback csv_logger(const std::filesystem::path& path);

struct TensorBoardOptions {
  std::uint64_t every_steps = 0;
  int histograms_every_epochs = 0;

  void each_field(OptionVisitor& visit) {
    visit("every_steps", every_steps,
          "Values are logged under \"step/\" exactly every this many steps; 0: epochs only.");
    visit("histograms_every_epochs", histograms_every_epochs,
          "Epochs from one histogram of each variable's values to the next; 0: none.");
  }
};
// Writes an event file into the folder, made if missing; view it with `tensorboard --logdir`. By the model's step:
// each epoch's values under History's names, and details under "learning_rate/", "gradient_norm/", "replica_<r>/"
// and, of several workers, "worker_<r>/". Resumed from a checkpoint, begins another file; TensorBoard drops what
// was repeated. Only the chief writes.
Callback tensorboard(const std::filesystem::path& folder, const TensorBoardOptions& options = {});

}  // namespace headrace
