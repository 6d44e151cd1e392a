#include "headrace/train/engine/fit_loop.h"

#include <algorithm>

#include "headrace/devices/base/checked_size.h"
#include "headrace/devices/base/error.h"
#include "headrace/train/engine/storage_types.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

constexpr std::uint64_t kReportEveryNs = 100'000'000;

std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0); }

// Steps in one pass over the data.
std::uint64_t steps_per_pass(const Dataset& data, const FitOptions& options) {
  const std::uint64_t batches = data.steps_per_epoch();
  if (batches == 0)
    throw ConfigError("the training data gives no batch", "keep the remainder, or use smaller batches");
  return divide_up(batches, static_cast<std::uint64_t>(std::max(1, options.accumulate)));
}

std::uint64_t steps_per_epoch(const Dataset& data, const FitOptions& options) {
  if (options.epochs < 1) throw ConfigError("fit needs at least one epoch, got " + std::to_string(options.epochs));
  return options.steps_per_epoch > 0 ? options.steps_per_epoch : steps_per_pass(data, options);
}

LoaderOptions loader_options(const ModelState& model, const FitOptions& options, std::uint64_t passes) {
  LoaderOptions loader;
  loader.seed = options.seed;
  loader.epochs = passes;
  loader.threads = options.threads;
  loader.prefetch = options.prefetch;
  loader.headspace = options.headspace;
  loader.errors = options.errors;
  loader.convert = options.convert;
  loader.converted = converted_type(model, Mode::kTrain);
  loader.resident = options.resident;
  loader.trace = options.trace;
  return loader;
}

std::uint64_t passes(const Dataset& data, const FitOptions& options) {
  const std::uint64_t epoch = steps_per_epoch(data, options);
  const auto steps = checked_product({static_cast<std::uint64_t>(options.epochs), epoch});
  if (!steps) {
    throw ConfigError("epochs = " + std::to_string(options.epochs) +
                          " of steps_per_epoch = " + std::to_string(epoch) + " are more steps than can be counted",
                      "train for fewer epochs, or for fewer steps in each");
  }
  return divide_up(*steps, steps_per_pass(data, options));
}

LoaderOptions validation_options(const ModelState& model, const FitOptions& options) {
  LoaderOptions loader = loader_options(model, options, static_cast<std::uint64_t>(options.epochs));
  loader.converted = converted_type(model, Mode::kEvaluate);
  if (loader.resident == Residency::kAlways) loader.resident = Residency::kAuto;
  loader.trace = nullptr;
  return loader;
}

double per_second(std::int64_t examples, double seconds) {
  return seconds > 0 ? static_cast<double>(examples) / seconds : 0.0;
}

}  // namespace

FitLoop::Validation::Validation(Model& model, const Dataset& data, const FitOptions& options)
    : loader(data, model.strategy().devices(), validation_options(model.state(), options)),
      evaluator(model.state(), loader,
                {.program = {.mode = Mode::kEvaluate,
                             .rows = loader.local_rows(),
                             .precision = model.state().compiled->precision},
                 .loss = model.state().compiled->loss}) {}

FitLoop::FitLoop(Model& model, const Dataset& train, const FitOptions& options)
    : model_(model),
      options_(options),
      control_(model),
      progress_(options, model.state().require_compiled("fit()").metrics),
      steps_(steps_per_epoch(train, options)),
      loader_(train, model.strategy().devices(), loader_options(model.state(), options, passes(train, options))),
      trainer_(model.strategy(), model, loader_,
               {.seed = options.seed,
                .accumulate = options.accumulate,
                .nan = options.nan,
                .mirror_check_every = options.mirror_check_every,
                .trace = options.trace}) {
  if (options.validation) validation_.emplace(model, *options.validation, options);
}

void FitLoop::warm_up() {
  trainer_.warm_up();
  if (validation_) validation_->evaluator.warm_up();
}

History FitLoop::run() {
  for (const Callback& callback : options_.callbacks) {
    if (callback.on_train_begin) callback.on_train_begin(control_);
  }
  for (int epoch = 0; epoch < options_.epochs && !stopped(); ++epoch) {
    progress_.begin_epoch(epoch);
    if (!train_epoch(epoch)) break;
    const EpochReport report = finish_epoch(epoch);
    remember(report);
    progress_.end_epoch(report);
    for (const Callback& callback : options_.callbacks) {
      if (callback.on_epoch_end) callback.on_epoch_end(report, control_);
    }
  }
  trainer_.finish();
  progress_.leave_line();
  loader_.stats().require_good();
  for (const Callback& callback : options_.callbacks) {
    if (callback.on_train_end) callback.on_train_end(control_);
  }
  return std::move(history_);
}

bool FitLoop::train_epoch(int epoch) {
  trainer_.reset_metrics();
  epoch_time_.restart();
  bad_before_ = bad_records();
  next_report_ns_ = now_ns() + kReportEveryNs;
  for (std::uint64_t step = 0; step < steps_; ++step) {
    if (stopped()) return false;
    if (!trainer_.step()) {
      throw ConfigError("the training data ended in epoch " + std::to_string(epoch + 1) + " after " +
                        std::to_string(step) + " of " + std::to_string(steps_) + " steps");
    }
    if (now_ns() >= next_report_ns_) report_step(epoch, step + 1);
  }
  return true;
}

EpochReport FitLoop::finish_epoch(int epoch) {
  const MetricSums sums = trainer_.finish();
  const double training = epoch_time_.seconds();
  const StepTimes times = trainer_.times();
  if (options_.nan == NanPolicy::kStop) model_.state().variables.check_finite();
  EpochReport report{.epoch = epoch,
                     .epochs = options_.epochs,
                     .steps = steps_,
                     .global_step = model_.global_step(),
                     .loss = mean_loss(sums),
                     .accuracy = mean_accuracy(sums),
                     .examples_per_second = per_second(sums.examples, training),
                     .input_stall_fraction = times.input_stall_fraction(),
                     .exposed_copy_fraction = times.exposed_copy_fraction(),
                     .device_idle_fraction = times.device_idle_fraction(),
                     .host_us_per_step = 1e-3 * static_cast<double>(times.host_ns) / static_cast<double>(steps_)};
  if (validation_) {
    const MetricSums validated = validation_->evaluator.run(0);
    report.val_loss = mean_loss(validated);
    report.val_accuracy = mean_accuracy(validated);
  }
  report.bad_records = bad_records() - bad_before_;
  report.seconds = epoch_time_.seconds();
  return report;
}

void FitLoop::report_step(int epoch, std::uint64_t step) {
  const MetricSums sums = trainer_.progress();
  const double seconds = epoch_time_.seconds();
  const StepTimes times = trainer_.times();
  const StepReport report{
      .epoch = epoch,
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
      .remaining_seconds = seconds / static_cast<double>(step) * static_cast<double>(steps_ - step)};
  progress_.step(report);
  for (const Callback& callback : options_.callbacks) {
    if (callback.on_step) callback.on_step(report, control_);
  }
  next_report_ns_ = now_ns() + kReportEveryNs;
}

void FitLoop::remember(const EpochReport& report) {
  const auto& metrics = model_.state().compiled->metrics;
  const bool accuracy = std::ranges::count(metrics, Metric::kAccuracy) > 0;
  history_.append("loss", report.loss);
  if (accuracy) history_.append("accuracy", report.accuracy);
  if (report.val_loss) history_.append("val_loss", *report.val_loss);
  if (accuracy && report.val_accuracy) history_.append("val_accuracy", *report.val_accuracy);
  history_.append("steps", static_cast<double>(report.steps));
  history_.append("seconds", report.seconds);
  history_.append("examples_per_second", report.examples_per_second);
  history_.append("input_stall_fraction", report.input_stall_fraction);
  history_.append("exposed_copy_fraction", report.exposed_copy_fraction);
  history_.append("device_idle_fraction", report.device_idle_fraction);
}

bool FitLoop::stopped() const {
  if (options_.stop_after_steps > 0 && model_.global_step() >= options_.stop_after_steps) return true;
  return control_.stop_requested() || (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed));
}

std::uint64_t FitLoop::bad_records() const {
  return loader_.stats().bad_records + (validation_ ? validation_->loader.stats().bad_records : 0);
}

}  // namespace headrace
