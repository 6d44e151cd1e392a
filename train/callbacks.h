// What a fit tells the program that started it. All calls come from the thread that called fit().
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headrace/train/metrics.h"

namespace headrace {

class Model;

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
  std::vector<MetricValue> metrics = {};  // those of compile() that are numbers, of the same batches
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
  std::vector<MetricValue> metrics = {}, val_metrics = {};  // those of compile(), in their order
};

// What a callback may do to the fit that called it.
class FitControl {
 public:
  explicit FitControl(Model& model) : model_(&model) {}

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

 private:
  Model* model_;
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

}  // namespace headrace
