// What a fit tells the program that started it: history, times, reports and the callbacks that get them. All calls
// come from the thread that called fit().
#pragma once

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

// What a fit saw: one list a metric, one entry an epoch. Names: "loss", each metric that is a number ("accuracy"),
// each term's own of a loss of several ("left_loss", see EpochReport::metrics), "val_loss", "val_accuracy" and so
// on, "steps", "seconds" (the whole epoch), "examples_per_second" (training alone), "input_stall_fraction",
// "exposed_copy_fraction", "device_idle_fraction", "learning_rate" (the optimizer's own after the epoch), and
// "gradient_norm" where it is known.
class History {
 public:
  // ConfigError listing the names there are.
  const std::vector<double>& operator[](const std::string& name) const;
  bool has(const std::string& name) const { return lists_.contains(name); }
  const std::map<std::string, std::vector<double>>& lists() const noexcept { return lists_; }
  std::size_t epochs() const;

  void append(const std::string& name, double value) { lists_[name].push_back(value); }

 private:
  std::map<std::string, std::vector<double>> lists_;
};

// When a value of one of its lists is better than another. kAuto: higher for accuracy, top_k and
// examples_per_second, of a validation or of one of several outputs too ("val_right/accuracy"), else lower.
enum class Better { kAuto, kLower, kHigher };
bool higher_is_better(const std::string& name, Better mode = Better::kAuto);

// Where the time of training steps went, as the devices' own clocks tell: sums over batches that are done, and
// over replicas. A replica's time runs from the end of one batch to the end of the next: it has nothing to do,
// waits for the batch to arrive, works.
struct StepTimes {
  std::uint64_t batches = 0;  // global ones
  std::int64_t elapsed_ns = 0;
  std::int64_t input_stall_ns = 0;   // nothing to do: the host was waiting for the batch
  std::int64_t exposed_copy_ns = 0;  // the batch had been handed out and was still on its way to the device
  std::int64_t idle_ns = 0;          // nothing to do for any other reason: the host was late
  // Within the work: waiting for other replicas to join a sum. Of CPU replicas; some steps ahead of the others.
  std::int64_t sync_wait_ns = 0;
  std::uint64_t host_ns = 0;  // of the thread that submits, without its waits; of batches submitted

  double input_stall_fraction() const noexcept { return share(input_stall_ns); }
  double exposed_copy_fraction() const noexcept { return share(exposed_copy_ns); }
  double sync_wait_fraction() const noexcept { return share(sync_wait_ns); }
  double device_idle_fraction() const noexcept { return share(idle_ns); }

 private:
  double share(std::int64_t ns) const noexcept {
    return elapsed_ns > 0 ? static_cast<double>(ns) / static_cast<double>(elapsed_ns) : 0.0;
  }
};

class Model;

// The length of a step's gradient as one vector, summed over batches and replicas, before clipping; and that of
// each trained variable, in layer order. Without what is frozen.
struct GradientNorms {
  double all = 0;
  std::vector<std::pair<std::string, double>> by_variable = {};  // "dense/weights"
};

struct StepReport {
  int epoch = 0;                  // from 0
  std::uint64_t step = 0;         // optimizer steps submitted this epoch
  std::uint64_t steps = 0;        // in the whole epoch
  std::uint64_t global_step = 0;  // over all fits of the model
  double seconds = 0;             // since the epoch began
  double loss = 0, accuracy = 0;  // means over the epoch so far: a few steps behind, but see Callback::every_steps
  double examples_per_second = 0;
  double input_stall_fraction = 0, exposed_copy_fraction = 0, device_idle_fraction = 0;  // as in EpochReport
  double remaining_seconds = 0;
  std::vector<MetricValue> metrics = {};    // as in EpochReport, of the same batches; tables in exact reports
  std::vector<double> learning_rates = {};  // as FitControl::learning_rates()
  // Of the last step. Nothing but with StepOptions::gradient_norms; in exact reports also where the optimizer
  // limits the norm, then `all` alone, of what it counts.
  std::optional<GradientNorms> gradient_norms = std::nullopt;
  std::vector<StepTimes> local_replicas = {};  // where each one's time went in this epoch, a few steps behind
};

struct EpochReport {
  int epoch = 0;  // from 0
  int epochs = 0;
  std::uint64_t steps = 0;          // optimizer steps made
  std::uint64_t planned_steps = 0;  // more than `steps` where the fit was stopped within the epoch
  std::uint64_t global_step = 0;
  double seconds = 0;             // with validation
  double loss = 0, accuracy = 0;  // accuracy is 0 where nothing counts it
  // Not of an epoch that was stopped.
  std::optional<double> val_loss = std::nullopt, val_accuracy = std::nullopt;
  double examples_per_second = 0;  // training alone
  // Shares of the devices' time in training, a few steps behind: no batch was ready; a batch was handed out but
  // still being copied or converted; the host had not submitted the step.
  double input_stall_fraction = 0, exposed_copy_fraction = 0, device_idle_fraction = 0;
  double host_us_per_step = 0;    // of the thread that submits, without its waits
  std::uint64_t bad_records = 0;  // skipped or substituted, see ErrorPolicy; validation's included
  // Those of compile(), in their order, then what each term of a loss of several gives by itself, without its
  // weight: "left_loss" of the output "left"; "left_mean_squared_error_loss" where that has several.
  std::vector<MetricValue> metrics = {}, val_metrics = {};
  std::vector<double> learning_rates = {};                     // after the epoch, as FitControl::learning_rates()
  std::optional<GradientNorms> gradient_norms = std::nullopt;  // of the last step, as in exact StepReports
  std::vector<StepTimes> local_replicas = {};                  // where each one's time went in training
};

// What History remembers of an epoch, by its names and in their order: "loss", the metrics that are numbers,
// "val_loss" and so on, "steps", "seconds" ...
std::vector<std::pair<std::string, double>> epoch_values(const EpochReport& report);

// What a callback may do to the fit that called it.
class FitControl {
 public:
  explicit FitControl(Model& model, std::function<LoaderStats()> input = {})
      : model_(&model), input_(std::move(input)) {}

  Model& model() const noexcept { return *model_; }
  // Ends the fit after the present step (on_step) or epoch (on_epoch_end).
  void request_stop() noexcept { stop_ = true; }
  bool stop_requested() const noexcept { return stop_; }

  // A factor on the learning rates of all groups, on top of their schedules, from the next step on. It belongs to
  // the model, and is 1 after compile(). ConfigError for what is negative or not finite.
  void set_learning_rate_scale(double scale);
  double learning_rate_scale() const noexcept;
  // Of the next step: the optimizer's own rate, then that of each of its groups, scale included.
  std::vector<double> learning_rates() const;

  // What the input engine did for the training of this epoch: from its first step, which waits for the engine's
  // start or for a validation before it, until now, or until the last step once that is over. Empty before the
  // first step, and where no fit is under way.
  LoaderStats input_stats() const { return input_ ? input_() : LoaderStats(); }

 private:
  Model* model_;
  std::function<LoaderStats()> input_;
  bool stop_ = false;
};

// Any of these may be empty. An exception from one ends the fit and reaches its caller.
struct Callback {
  std::string name = {};  // under which its state is kept
  std::function<void(FitControl&)> on_train_begin = {};
  std::function<void(int epoch, FitControl&)> on_epoch_begin = {};  // from 0
  std::function<void(const StepReport&, FitControl&)> on_step = {};
  // 0: on_step comes when it suits, no more than about ten times a second. Otherwise exactly after every this many
  // optimizer steps of the model (StepReport::global_step): the fit first waits until they are done, so that the
  // report counts all of them, the model holds what it says, and a stop requested then ends the fit there. Then
  // the devices wait for the host: small numbers cost time.
  std::uint64_t every_steps = 0;
  std::function<void(const EpochReport&, FitControl&)> on_epoch_end = {};
  std::function<void(FitControl&)> on_train_end = {};
  // What it remembers, JSON text, for a checkpoint; restore() is called before on_train_begin. Both or neither,
  // and with a name.
  std::function<std::string()> save = {};
  std::function<void(const std::string&)> restore = {};
};

// --- callbacks that many programs need; each value is for one fit at a time ---

// `monitor` is a name of History. One that no epoch has is a ConfigError at the first epoch's end, listing the
// names; an epoch that was stopped and lacks it is passed over. A value that is not finite is never better.
struct EarlyStoppingOptions {
  std::string monitor = "val_loss";
  int patience = 0;      // epochs without improvement after which the fit ends; 0 as 1
  double min_delta = 0;  // by which a value must be better to count
  Better mode = Better::kAuto;
  // At the end of the fit the model gets the variables back that it had after the best epoch, lookahead's and the
  // average's included: a copy in host memory, which a checkpoint keeps too.
  bool restore_best_weights = false;
};
Callback early_stopping(const EarlyStoppingOptions& options = {});

struct ReduceLrOnPlateauOptions {
  std::string monitor = "val_loss";
  double factor = 0.1;  // of all learning rates, in (0, 1)
  int patience = 10;    // epochs without improvement after which they are reduced
  double min_delta = 1e-4;
  Better mode = Better::kAuto;
  int cooldown = 0;      // epochs after a reduction before waiting begins again
  double min_scale = 0;  // below which FitControl's learning rate scale is not taken
};
Callback reduce_lr_on_plateau(const ReduceLrOnPlateauOptions& options = {});

// At the start of each epoch, from 0, the optimizer's own rate becomes `rate(epoch)`; groups keep their
// proportions to it. ConfigError where the optimizer's own rate is no constant above 0: it has a schedule then.
Callback learning_rate_scheduler(std::function<double(int epoch)> rate);

// One line an epoch: its number from 1, and History's values by name. Replaces the file when a fit begins; resumed
// from a checkpoint it keeps the lines of the epochs before.
Callback csv_logger(const std::filesystem::path& path);

struct TensorBoardOptions {
  std::uint64_t every_steps = 0;    // values under "step/" of exactly every this many steps; 0: of epochs alone
  int histograms_every_epochs = 0;  // of each variable's values; 0: none
};
// Writes an event file into the folder, which is made; `tensorboard --logdir` shows it. By the model's step: each
// epoch's values by History's names, and under "learning_rate/", "gradient_norm/" and "replica_<r>/" what a report
// has of each. Resumed from a checkpoint it begins another file, before which TensorBoard cuts what was repeated.
Callback tensorboard(const std::filesystem::path& folder, const TensorBoardOptions& options = {});

}  // namespace headrace
