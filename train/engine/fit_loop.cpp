#include "headrace/train/engine/fit_loop.h"

#include <algorithm>

#include "headrace/devices/base/check.h"
#include "headrace/train/engine/input_options.h"
#include "headrace/train/engine/shards.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

constexpr std::uint64_t kReportEveryNs = 100'000'000;

// Passes over the data that hold all steps of the fit.
std::uint64_t passes(const Dataset& data, const FitOptions& options) {
  if (data.streamed()) return 1;
  const std::uint64_t pass = steps_of_pass(data, options);
  return (steps_of_fit(data, options) + pass - 1) / pass;
}

double per_second(std::int64_t examples, double seconds) {
  return seconds > 0 ? static_cast<double>(examples) / seconds : 0.0;
}

}  // namespace

FitLoop::Validation::Validation(Model& model, const Dataset& data, const FitOptions& options)
    : shards(shard_devices(model.strategy(), options.virtual_shards)),
      loader(data, shards, validation_input(model.state(), options)),
      evaluator(model.state(), loader,
                {.program = {.mode = Mode::kEvaluate,
                             .rows = loader.local_rows(),
                             .precision = model.state().compiled->precision},
                 .loss = model.state().compiled->loss,
                 .metrics = model.state().compiled->metrics,
                 .averaged_weights = options.validate_averaged,
                 .virtual_shards = options.virtual_shards}) {}

FitLoop::FitLoop(Model& model, const Dataset& train, const FitOptions& options)
    : model_(model),
      options_(options),
      control_(model),
      callbacks_(options.callbacks, control_),
      progress_(options),
      steps_(steps_of_epoch(train, options)),
      streamed_(train.streamed()),
      shards_(shard_devices(model.strategy(), options.virtual_shards)),
      loader_(train, shards_, training_input(model.state(), options, passes(train, options))),
      trainer_(model.strategy(), model, loader_,
               {.seed = options.input.seed,
                .accumulate = options.accumulate,
                .virtual_shards = options.virtual_shards,
                .nan = options.nan,
                .mirror_check_every = options.mirror_check_every,
                .gradient_norms = options.gradient_norms,
                .trace = options.input.trace}) {
  if (options.validation) validation_.emplace(model, *options.validation, options);
}

void FitLoop::warm_up() {
  trainer_.warm_up();
  if (validation_) validation_->evaluator.warm_up();
}

History FitLoop::run() {
  callbacks_.begin_train();
  for (int epoch = 0; epoch < options_.epochs && !stopped(); ++epoch) {
    progress_.begin_epoch(epoch);
    callbacks_.begin_epoch(epoch);
    const std::uint64_t steps = train_epoch(epoch);
    if (steps == 0) break;
    const EpochReport report = finish_epoch(epoch, steps);
    remember(report);
    progress_.end_epoch(report);
    callbacks_.end_epoch(report);
  }
  trainer_.finish();
  progress_.leave_line();
  loader_.stats().require_good();
  callbacks_.end_train();
  return std::move(history_);
}

std::uint64_t FitLoop::train_epoch(int epoch) {
  trainer_.reset_metrics();
  epoch_time_.restart();
  bad_before_ = bad_records();
  next_report_ns_ = now_ns() + kReportEveryNs;
  for (std::uint64_t step = 0; step < steps_; ++step) {
    if (stopped()) return step;
    if (!trainer_.step()) {
      HEADRACE_CHECK(streamed_, "the training data ended before the last step of the fit");
      ended_ = true;
      return step;
    }
    report_step(epoch, step + 1);
  }
  return steps_;
}

EpochReport FitLoop::finish_epoch(int epoch, std::uint64_t steps) {
  const MetricSums sums = trainer_.finish();
  const double training = epoch_time_.seconds();
  const StepTimes times = trainer_.times();
  if (options_.nan != NanPolicy::kIgnore) model_.state().variables.check_finite();
  EpochReport report{.epoch = epoch,
                     .epochs = options_.epochs,
                     .steps = steps,
                     .planned_steps = steps_,
                     .global_step = model_.global_step(),
                     .loss = mean_loss(sums),
                     .accuracy = mean_accuracy(sums),
                     .examples_per_second = per_second(sums.examples, training),
                     .input_stall_fraction = times.input_stall_fraction(),
                     .exposed_copy_fraction = times.exposed_copy_fraction(),
                     .device_idle_fraction = times.device_idle_fraction(),
                     .host_us_per_step = 1e-3 * static_cast<double>(times.host_ns) / static_cast<double>(steps),
                     .metrics = trainer_.metrics(),
                     .learning_rates = control_.learning_rates(),
                     .gradient_norms = trainer_.gradient_norms(),
                     .replicas = trainer_.replica_times()};
  if (steps == steps_) validate(report);
  report.bad_records = bad_records() - bad_before_;
  report.seconds = epoch_time_.seconds();
  return report;
}

void FitLoop::validate(EpochReport& report) {
  if (!validation_) return;
  const std::optional<MetricSums> validated = validation_->evaluator.run({.stop = options_.stop});
  if (!validated) return;
  report.val_loss = mean_loss(*validated);
  report.val_accuracy = mean_accuracy(*validated);
  report.val_metrics = validation_->evaluator.runner().metrics();
}

void FitLoop::report_step(int epoch, std::uint64_t step) {
  const bool exact = callbacks_.wants(model_.global_step());
  const bool live = now_ns() >= next_report_ns_;
  if (!exact && !live) return;
  const bool done = exact || options_.gradient_norms;  // these are the last step's, which must be done
  StepReport report = step_report(epoch, step, done ? trainer_.finish() : trainer_.progress());
  if (done) report.gradient_norms = trainer_.gradient_norms();
  if (exact) callbacks_.exact_step(report);
  if (!live) return;
  progress_.step(report);
  callbacks_.step(report);
  next_report_ns_ = now_ns() + kReportEveryNs;
}

StepReport FitLoop::step_report(int epoch, std::uint64_t step, const MetricSums& sums) const {
  const double seconds = epoch_time_.seconds();
  const StepTimes times = trainer_.times();
  return {.epoch = epoch,
          .step = step,
          .steps = steps_,
          .global_step = model_.global_step(),
          .seconds = seconds,
          .loss = mean_loss(sums),
          .accuracy = mean_accuracy(sums),
          .examples_per_second = per_second(sums.examples, seconds),
          .input_stall_fraction = times.input_stall_fraction(),
          .exposed_copy_fraction = times.exposed_copy_fraction(),
          .device_idle_fraction = times.device_idle_fraction(),
          .remaining_seconds = seconds / static_cast<double>(step) * static_cast<double>(steps_ - step),
          .metrics = trainer_.metrics(),
          .learning_rates = control_.learning_rates(),
          .replicas = trainer_.replica_times()};
}

void FitLoop::remember(const EpochReport& report) {
  for (const auto& [name, value] : epoch_values(report)) history_.append(name, value);
}

bool FitLoop::stopped() const {
  if (ended_) return true;
  if (options_.stop_after_steps > 0 && model_.global_step() >= options_.stop_after_steps) return true;
  return control_.stop_requested() || (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed));
}

std::uint64_t FitLoop::bad_records() const {
  return loader_.stats().bad_records + (validation_ ? validation_->loader.stats().bad_records : 0);
}

}  // namespace headrace
