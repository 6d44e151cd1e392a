#include "headrace/train/fit/fit_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/failures.h"
#include "headrace/devices/base/hash.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/kernels.h"
#include "headrace/train/fit/options_of_fit.h"
#include "headrace/train/step/shards.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

constexpr std::uint64_t kReportEveryNs = 100'000'000;

// Returns the passes over the data that hold all steps of the fit.
std::uint64_t passes(const Dataset& data, const FitOptions& options) {
  if (data.one_pass()) return 1;
  if (data.streamed()) return steps_of_fit(data, options) * static_cast<std::uint64_t>(options.step.accumulate);
  const std::uint64_t pass = steps_of_pass(data, options);
  return (steps_of_fit(data, options) + pass - 1) / pass;
}

// Returns the sources of the training and the validation; one if that was split off.
std::vector<SourcePtr> sources_of(const Dataset& train, const FitOptions& options) {
  std::vector<SourcePtr> sources{train.source()};
  if (options.validation && options.validation->source() != sources.front()) {
    sources.push_back(options.validation->source());
  }
  return sources;
}

// Describes the input for evaluating the model: the validation's if there is one.
InputDescription input_of_fit(const Dataset& train, const FitOptions& options) {
  const Dataset& usual = options.validation ? *options.validation : train;
  if (!options.checkpoints) return describe_input(usual);
  return describe_input(options.checkpoints->input.value_or(usual), options.checkpoints->views);
}

// Other workers are silent.
FitOptions options_of_worker(FitOptions options, const Strategy& strategy) {
  if (!strategy.is_chief()) options.verbose = 0;
  return options;
}

double per_second(std::int64_t examples, double seconds) {
  return seconds > 0 ? static_cast<double>(examples) / seconds : 0.0;
}

}  // namespace

FitLoop::Validation::Validation(Model& model, const Dataset& data, const FitOptions& options,
                                const std::optional<LoaderState>& start)
    : shards(shard_devices(model.strategy(), options.step.virtual_shards)),
      loader(data, shards, validation_input(model.state(), options, start)),
      evaluator(model, loader,
                {.virtual_shards = options.step.virtual_shards,
                 .averaged_weights = options.validate_averaged,
                 .stop = options.stop}) {}

FitLoop::FitLoop(Model& model, const Dataset& train, const FitOptions& options)
    : model_(model),
      options_(options_of_worker(options, model.strategy())),
      compilation_(model.state().compilations),
      class_weighting_(model, options_.class_weight),
      control_(
          model, [this] { return input_stats(); },
          history_lists(model, options_.validation.has_value(),
                        options_.step.gradient_norms || model.state().compiled->optimizer.clip.max_norm > 0)),
      callbacks_(options_.callbacks, control_),
      agreement_(model.strategy()),
      progress_(options_),
      steps_(steps_of_epoch(train, options_)),
      streamed_(train.streamed()),
      folder_(taken_folder()),
      data_(identity_of(train)),
      validation_data_(options_.validation ? std::optional(identity_of(*options_.validation)) : std::nullopt),
      sources_(sources_of(train, options_)),
      resumption_(model, options_, {.steps = steps_, .data = data_, .validation = validation_data_}),
      position_(resumption_.position()),
      shards_(shard_devices(model.strategy(), options_.step.virtual_shards)),
      loader_(train, shards_,
              training_input(model.state(), options_, passes(train, options_), resumption_.loader())),
      trainer_(model.strategy(), model, loader_,
               {.seed = options_.input.seed, .step = options_.step, .trace = options_.input.trace}) {
  if (options_.validation) {
    validated_ = resumption_.validation();
    validation_.emplace(model, *options_.validation, options_, validated_);
  }
  history_ = resumption_.history();
  model.state().input = input_of_fit(train, options_);
  if (!options_.checkpoints) return;
  if (options_.input.headspace > 0) {
    throw ConfigError(
        "a training on replayed batches (" + named("LoaderOptions::headspace") + ") cannot be continued",
        "leave out either checkpoints or headspace");
  }
  checkpoints_.emplace(model, options_, position_.run, position_.best, control_.lists(), trainer_);
}

std::optional<TrainingFolder> FitLoop::taken_folder() const {
  if (!options_.checkpoints || options_.checkpoints->folder.empty()) return std::nullopt;
  if (!model_.strategy().is_chief()) return std::nullopt;
  std::optional<TrainingFolder> folder(options_.checkpoints->folder);
  if (!options_.resume) folder->require_unused(model_.state().run);
  return folder;
}

void FitLoop::warm_up() {
  check_model();
  trainer_.warm_up();
  if (validation_) validation_->evaluator.warm_up();
}

History FitLoop::run() {
  if (std::exchange(begun_, true)) throw ConfigError("this fit has been run", "prepare another one");
  check_model();
  restore();
  if (agreement_.several()) {
    Workers& workers = *model_.strategy().workers();
    require_same_work(workers, model_, work());
    for (const SourcePtr& source : sources_) {
      require_same_content(workers, source, options_.input.seed, model_.state().compared);
    }
  }
  callbacks_.begin_train();
  agree();
  run_epochs();
  trainer_.finish();
  if (checkpoints_) {
    if (!checkpoints_->has(position_)) save_now(FitCheckpoints::Moment::kEnd);
    checkpoints_->finish();
    folder_.reset();
    agree();  // the chief's last checkpoint is written
  }
  progress_.leave_line();
  loader_.stats().require_good();
  const std::uint64_t written = model_.state().written;
  callbacks_.end_train();
  agree();
  agreement_.require_uninterrupted(fmt::format("all stopped after step {}", model_.global_step()));
  // Of several workers all or none: one may have callbacks that others do not call.
  const bool changed = agreement_.several() || model_.state().written != written;
  if (checkpoints_ && changed && !options_.checkpoints->record.empty()) {
    save_now(FitCheckpoints::Moment::kReturned);
    checkpoints_->finish();
  }
  return std::move(history_);
}

void FitLoop::check_model() const { model_.state().require_compilation(compilation_, "fit"); }

SharedWork FitLoop::work() const {
  return {.steps = steps_, .data = data_, .validation = validation_data_, .position = loader_.state()};
}

void FitLoop::restore() {
  if (!resumption_.continues()) return;
  resumption_.restore(model_.state());
  callbacks_.restore(resumption_.callbacks());
  if (position_.ended && options_.epochs <= position_.epochs) control_.request_stop();
}

void FitLoop::run_epochs() {
  for (int epoch = position_.epoch; epoch < options_.epochs && !stopped(); ++epoch) {
    progress_.begin_epoch(epoch);
    begin_epoch(epoch);
    agree();
    const std::uint64_t steps = train_epoch(epoch);
    if (steps == 0) break;
    const EpochReport report = finish_epoch(epoch, steps);
    const bool cut = is_cut(report);
    if (cut && checkpoints_) save_now(FitCheckpoints::Moment::kEnd);
    remember(report);
    progress_.end_epoch(report);
    callbacks_.end_epoch(report);
    agree();
    if (cut) break;
    position_.epoch = epoch + 1;
    position_.epoch_step = 0;
    if (validation_) validated_ = validation_->loader.state();
    if (checkpoints_) checkpoints_->save_epoch(state_now(), report);
  }
}

void FitLoop::begin_epoch(int epoch) {
  trainer_.reset_metrics();
  first_step_input_.reset();
  epoch_input_.reset();
  earlier_steps_ = position_.epoch_step;
  earlier_examples_ = 0;
  bad_before_ = bad_records();
  if (earlier_steps_ == 0) return callbacks_.begin_epoch(epoch);
  trainer_.restore_totals(resumption_.totals());
  earlier_examples_ = trainer_.progress().examples;
  if (model_.strategy().is_chief()) {
    bad_before_ -= position_.bad_records;  // may wrap: it is only subtracted from a larger number
  }
}

std::uint64_t FitLoop::train_epoch(int epoch) {
  epoch_time_.restart();
  next_report_ns_ = now_ns() + kReportEveryNs;
  while (position_.epoch_step < steps_) {
    if (stopped()) return position_.epoch_step;
    if (!trainer_.step()) {
      HEADRACE_CHECK(streamed_, "the training data ended before the last step of the fit");
      ended_ = true;
      return position_.epoch_step;
    }
    ++position_.epoch_step;
    if (!first_step_input_) first_step_input_ = loader_.stats();
    if (!std::exchange(plans_compared_, true)) resumption_.compare_plans(chosen_plans(), options_);
    report_step(epoch, position_.epoch_step);
    if (checkpoints_ && checkpoints_->is_due()) save_now(FitCheckpoints::Moment::kWithin);
  }
  return steps_;
}

void FitLoop::save_now(FitCheckpoints::Moment moment) {
  const auto save_totals = [this](int r, std::byte* into) { trainer_.save_totals(r, into); };
  const bool begun = position_.epoch_step > 0;
  const bool copied = begun && !agreement_.several();
  checkpoints_->save(state_now(), copied ? save_totals : ModelSnapshot::SaveTotals(), moment);
}

TrainingState FitLoop::state_now() {
  TrainingState state{.position = position_, .history = history_, .callbacks = callbacks_.save()};
  const bool begun = position_.epoch_step > 0;
  if (begun && agreement_.several()) state.totals = trainer_.gather_totals();
  state.position.epochs = options_.epochs;
  state.position.ended = control_.stop_requested() && position_.epoch_step == 0;
  state.position.steps_per_epoch = steps_;
  state.position.accumulate = options_.step.accumulate;
  state.position.virtual_shards = options_.step.virtual_shards;
  state.position.world_replicas = model_.strategy().world_replicas();
  state.position.seed = options_.input.seed;
  state.position.plans = chosen_plans();
  // A part that fails at bad records does not change what an earlier part did with them.
  const OnError on_error = options_.input.errors.on_error;
  if (on_error != OnError::kFail || !position_.on_error) state.position.on_error = on_error;
  state.position.loader = loader_.state();
  state.position.validation = validated_;
  state.position.data = data_;
  state.position.validation_data = validation_data_;
  state.position.bad_records = 0;
  if (begun) {
    for (const WorkerShare& share : gather({.times = {}, .bad_records = bad_records() - bad_before_})) {
      state.position.bad_records += share.bad_records;
    }
  }
  state.position.gradient_norms = position_.epoch_step == steps_ ? last_gradient_norms() : std::nullopt;
  state.position.learning_rate_scale = model_.state().learning_rate_scale;
  return state;
}

std::map<std::string, std::string> FitLoop::chosen_plans() const {
  return model_.strategy().device(0).kernels()->chosen_plans();
}

// Returns the norms of the last step, which an earlier process may have made.
std::optional<GradientNorms> FitLoop::last_gradient_norms() const {
  return earlier_steps_ == position_.epoch_step ? position_.gradient_norms : trainer_.gradient_norms();
}

bool FitLoop::is_cut(const EpochReport& report) const {
  if (ended_) return false;
  return report.steps < steps_ || (validation_.has_value() && !report.val_loss);
}

EpochReport FitLoop::finish_epoch(int epoch, std::uint64_t steps) {
  epoch_input_ = input_stats();
  const MetricSums sums = trainer_.finish();
  WorkerShare mine{.times = trainer_.times(), .training_seconds = epoch_time_.seconds()};
  if (options_.step.nan != NanPolicy::kIgnore) model_.state().variables.check_finite();
  EpochReport report{.epoch = epoch,
                     .epochs = options_.epochs,
                     .steps = steps,
                     .planned_steps = steps_,
                     .global_step = model_.global_step(),
                     .loss = mean_loss(sums),
                     .accuracy = reported_accuracy(sums, trainer_.metrics()),
                     .host_us_per_step = 1e-3 * static_cast<double>(mine.times.host_ns) /
                                         static_cast<double>(std::max<std::uint64_t>(1, steps - earlier_steps_)),
                     .metrics = trainer_.metrics(),
                     .learning_rates = control_.learning_rates(),
                     .gradient_norms = last_gradient_norms(),
                     .local_replicas = trainer_.replica_times()};
  if (steps == steps_) validate(report);
  mine.bad_records = bad_records() - bad_before_;
  mine.seconds = epoch_time_.seconds();
  StepTimes times;
  double training = 0;
  for (const WorkerShare& share : gather(mine)) {
    times += share.times;
    training = std::max(training, share.training_seconds);
    report.seconds = std::max(report.seconds, share.seconds);
    report.bad_records += share.bad_records;
    if (agreement_.several()) report.workers.push_back(share.times);
  }
  report.examples_per_second = per_second(sums.examples - earlier_examples_, training);
  report.input_stall_fraction = times.input_stall_fraction();
  report.exposed_copy_fraction = times.exposed_copy_fraction();
  report.device_idle_fraction = times.device_idle_fraction();
  return report;
}

std::vector<FitLoop::WorkerShare> FitLoop::gather(const WorkerShare& mine) const {
  if (!agreement_.several()) return {mine};
  std::vector<WorkerShare> shares;
  for (const auto& share : gather_values(*model_.strategy().workers(), std::span(&mine, 1))) {
    shares.push_back(share.front());
  }
  return shares;
}

void FitLoop::validate(EpochReport& report) {
  if (!validation_) return;
  if (const auto& workers = model_.strategy().workers()) {
    workers->set_moment(fmt::format("the validation after step {}", model_.global_step()));
  }
  const std::optional<MetricSums> validated = validation_->evaluator.pass();
  if (!validated) return;
  report.val_loss = mean_loss(*validated);
  report.val_metrics = validation_->evaluator.metrics();
  report.val_accuracy = reported_accuracy(*validated, report.val_metrics);
}

void FitLoop::report_step(int epoch, std::uint64_t step) {
  const bool exact = callbacks_.wants(model_.global_step());
  const bool meets = agreement_.meets_after_step();
  const bool live = agreement_.several() ? meets : now_ns() >= next_report_ns_;
  if (!exact && !live) return;
  // The norms are the last step's, which must be done, as everything before workers meet.
  const bool done = exact || meets || options_.step.gradient_norms;
  StepReport report = step_report(epoch, step, done ? trainer_.finish() : trainer_.progress());
  if (done) report.gradient_norms = trainer_.gradient_norms();
  if (meets) {
    for (const WorkerShare& share : gather({.times = trainer_.times()})) report.workers.push_back(share.times);
    agree();
  }
  if (exact) callbacks_.exact_step(report);
  if (!live) return;
  progress_.step(report);
  callbacks_.step(report);
  next_report_ns_ = now_ns() + kReportEveryNs;
}

StepReport FitLoop::step_report(int epoch, std::uint64_t step, const MetricSums& sums) const {
  const double seconds = epoch_time_.seconds();
  const double each = seconds / static_cast<double>(step - earlier_steps_);
  const StepTimes times = trainer_.times();
  return {.epoch = epoch,
          .step = step,
          .steps = steps_,
          .global_step = model_.global_step(),
          .seconds = seconds,
          .loss = mean_loss(sums),
          .accuracy = reported_accuracy(sums, trainer_.metrics()),
          .examples_per_second = per_second(sums.examples - earlier_examples_, seconds),
          .input_stall_fraction = times.input_stall_fraction(),
          .exposed_copy_fraction = times.exposed_copy_fraction(),
          .device_idle_fraction = times.device_idle_fraction(),
          .remaining_seconds = each * static_cast<double>(steps_ - step),
          .metrics = trainer_.metrics(),
          .learning_rates = control_.learning_rates(),
          .local_replicas = trainer_.replica_times()};
}

void FitLoop::remember(const EpochReport& report) {
  for (const auto& [name, value] : epoch_values(report)) history_.append(name, value);
}

bool FitLoop::stopped() const {
  if (ended_) return true;
  if (options_.stop_after_steps > 0 && model_.global_step() >= options_.stop_after_steps) return true;
  return agreement_.several() ? agreement_.stops() : control_.stop_requested() || is_interrupted();
}

bool FitLoop::is_interrupted() const {
  return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed);
}

void FitLoop::agree() {
  if (!agreement_.several()) return;
  std::string state =
      fmt::format("step {}, learning rates times {:g}", model_.global_step(), control_.learning_rate_scale());
  // A callback that writes variables must do so on every worker.
  if (model_.state().written != 0) state += ", variables written to hash " + to_hex(model_.state().written);
  agreement_.agree(control_.stop_requested(), is_interrupted(), state);
}

LoaderStats FitLoop::input_stats() const {
  if (epoch_input_) return *epoch_input_;
  return first_step_input_ ? loader_.stats().since(*first_step_input_) : LoaderStats();
}

std::uint64_t FitLoop::bad_records() const {
  return loader_.stats().bad_records + (validation_ ? validation_->loader.stats().bad_records : 0);
}

}  // namespace headrace
