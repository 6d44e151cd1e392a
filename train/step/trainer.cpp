#include "headrace/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <utility>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/train/model/submission.h"
#include "headrace/train/step/loop_checks.h"
#include "headrace/train/step/training_step.h"
#include "headrace/train/strategy.h"

namespace headrace {

// Chooses the step's phase, records its parts and launches them; training_step.cpp says what a step is.
class Trainer::Impl {
 public:
  Impl(Strategy& strategy, Model& model, Loader& loader, const TrainerOptions& options)
      : strategy_(strategy),
        model_(model),
        state_(model.state()),
        loader_(loader),
        options_(options),
        step_(state_, loader, options),
        pass_(state_, queue(), loader.fields()),
        order_(options.step.accumulate > 1) {
    state_.require_frozen_as_compiled();
    if (options.first_step) state_.step = *options.first_step;
    state_.input = describe_input(loader.dataset());
    if (options.step.nan == NanPolicy::kTrace) trace_.emplace(state_, step_);
    const Program& program = step_.program().program();
    for (LearningPhase& phase : learning_phases(program, state_.layout, state_.graph->size(), step_.plan())) {
      phases_.push_back({.phase = std::move(phase)});
      record(phases_.back(), step_.in_parts() ? kStepEnd : kWholeStep);
      if (step_.in_parts()) record(phases_.back(), kStepBatch);
    }
  }

  void warm_up() {
    std::vector<std::vector<Buffer>> saved;
    for (int r = 0; r < strategy_.local_replicas(); ++r)
      saved.push_back(step_.arenas(r).save(strategy_.stream(r)));
    for (RecordedPhase& phase : phases_) queue().warm_up(recorded_batch(phase, true));
    for (int r = 0; r < strategy_.local_replicas(); ++r) {
      step_.arenas(r).restore(strategy_.stream(r), saved[static_cast<std::size_t>(r)]);
    }
  }

  // Only submits: waits for input, and if too many batches are in flight.
  bool step() {
    order_.whole();
    const Stopwatch whole;
    const std::uint64_t waited = queue().waited_ns();
    choose_phase();
    std::int64_t examples = 0;
    bool last = false;
    for (int micro = 1; !last; ++micro) {
      std::optional<GlobalBatch> batches = take();
      if (!batches) return false;
      const BatchPosition position = batches->front().position();
      last = micro == options_.step.accumulate || position.last_of_epoch;
      if (micro == 1) step_.begin();
      examples += position.global_examples;
      if (trace_) {
        submit_traced(std::move(*batches), examples);
      } else {
        submit(std::move(*batches), examples, recorded_batch(current(), last));
      }
    }
    if (trace_) {
      launch({.reduce = true});
      update();
      trace_->check_update(state_.step);
    }
    advance();
    host_ns_ += whole.nanoseconds() - (queue().waited_ns() - waited);
    return true;
  }

  std::optional<GlobalBatch> take() { return queue().take(loader_); }

  const ForwardPass& forward(GlobalBatch batches) {
    if (step_.shards().is_virtual()) {
      throw ConfigError("forward() and backward() of virtual shards come together, for shards share memory",
                        "call gradients(), or train without virtual shards");
    }
    const std::int64_t examples = order_.forward(batches.front().position().global_examples);
    choose_phase();
    submit(std::move(batches), examples, {.compute = launcher(current(), {.forward = true})});
    return pass_;
  }

  void backward() {
    order_.backward();
    launch({.backward = true});
  }

  void gradients(GlobalBatch batches) {
    const bool first = order_.begins();
    const std::int64_t examples = order_.forward(batches.front().position().global_examples);
    order_.backward();
    choose_phase();
    if (first) step_.begin();
    if (trace_) return submit_traced(std::move(batches), examples);
    submit(std::move(batches), examples, {.compute = launcher(current(), kStepBatch)});
  }

  void all_reduce() {
    order_.all_reduce();
    launch({.reduce = true});
  }

  void apply_gradients() {
    order_.apply_gradients();
    update();
    advance();
  }

  void discard_gradients() {
    order_.discard_gradients();
    submit_to_all(strategy_, state_.step, [this](int r) { step_.discard_gradients(r); });
  }

  TensorView gradient(const std::string& name, int replica) const {
    const Variable& variable = state_.layout.find(name);
    if (variable.spec.role != VariableRole::kTrained) {
      throw ConfigError("variable '" + name + "' is not trained: it has no gradient");
    }
    if (variable.frozen) {
      throw ConfigError("variable '" + name + "' is frozen: it has no gradient", "unfreeze() it, then compile()");
    }
    return {step_.arenas(replica).gradients.as<float>() + variable.offset, variable.spec.shape, DType::kF32};
  }

  MetricSums finish() {
    queue().finish();
    strategy_.synchronize();
    return queue().totals().sums();
  }

  void reset_metrics() {
    queue().reset();
    host_ns_ = 0;
  }

  StepTimes times() const noexcept {
    StepTimes times = queue().times();
    times.host_ns = host_ns_;
    return times;
  }

  std::optional<GradientNorms> gradient_norms() const {
    if (step_.measure()) return step_.measure()->read();
    if (!step_.plan().limits_norm()) return std::nullopt;
    return GradientNorms{.all = step_.arenas(0).read_norm(strategy_.stream(0))};
  }

  const BatchQueue& queue() const noexcept { return step_.queue(); }
  BatchQueue& queue() noexcept { return step_.queue(); }

 private:
  using Works = std::vector<std::unique_ptr<CapturedWork>>;  // by shard or replica

  struct RecordedPhase {
    LearningPhase phase;
    std::map<StepParts, Works> parts = {};  // recorded so far
  };

  // Captures the parts when they are first needed, for all shards or replicas: none may be launched before all are
  // captured, because it may wait for the others.
  const Works& record(RecordedPhase& phase, const StepParts& parts) {
    Works& works = phase.parts[parts];
    const int count = parts.computes_batch() ? step_.shards().local_shards() : strategy_.local_replicas();
    for (int i = static_cast<int>(works.size()); i < count; ++i) {
      const ReplicaStreams streams = step_.streams(parts, i);
      works.push_back(capture(streams.compute, [&] { step_.submit(parts, i, phase.phase, streams); }));
    }
    return works;
  }

  // Returns a function that launches the parts of a shard or replica.
  std::function<void(int)> launcher(RecordedPhase& phase, const StepParts& parts) {
    return [this, parts, &works = record(phase, parts)](int i) {
      step_.streams(parts, i).compute.launch(*works[static_cast<std::size_t>(i)]);
    };
  }

  void launch(const StepParts& parts) { submit_to_all(strategy_, state_.step, launcher(current(), parts)); }

  // Returns the work of a batch in step(): the whole step, or its batch and, for the last one, the step's end.
  BatchQueue::Work recorded_batch(RecordedPhase& phase, bool last) {
    if (!step_.in_parts()) return {.compute = launcher(phase, kWholeStep)};
    BatchQueue::Work work{.compute = launcher(phase, kStepBatch)};
    if (last) work.finish = launcher(phase, kStepEnd);
    return work;
  }

  RecordedPhase& current() { return phases_[phase_]; }

  void choose_phase() {
    std::size_t due = phase_;
    while (due + 1 < phases_.size() && phases_[due + 1].phase.begin <= state_.step) ++due;
    if (due == phase_) return;
    phase_ = due;
    step_.zero_unused_gradients(current().phase);
  }

  // Submits a batch that ends at `examples` into its step.
  void submit(GlobalBatch batches, std::int64_t examples, const BatchQueue::Work& work) {
    const StepScalars common = scalars(batches.front().position(), examples);
    queue().submit(std::move(batches), common, work);
  }

  // Submits a batch without capturing it, and checks its numbers.
  void submit_traced(GlobalBatch batches, std::int64_t examples) {
    const LearningPhase& phase = current().phase;
    submit(std::move(batches), examples, {.compute = [&](int shard) {
             trace_->keep_inputs(shard);
             step_.submit(kStepBatch, shard, phase, {.compute = step_.shards().stream(shard)});
           }});
    trace_->check(phase);
  }

  void update() {
    launch({.update = true});
    submit_to_all(strategy_, state_.step, [this](int r) { queue().record_done(r); });
  }

  // Returns the scalars of a batch that ends at `group_end` examples into its step. Accumulated gradients are
  // sums, which the update divides by the step's examples.
  StepScalars scalars(const BatchPosition& position, std::int64_t group_end) const {
    const bool sums = options_.step.accumulate > 1 || state_.compiled->loss.reduction == Reduction::kSum;
    StepScalars common{.step = state_.step};
    common.inverse_global_rows =
        sums ? 1.0F : 1.0F / static_cast<float>(std::max<std::int64_t>(1, position.global_examples));
    common.first_row = static_cast<std::uint64_t>(group_end - position.global_examples);
    step_.plan().set_rates(state_.step, common, static_cast<float>(state_.learning_rate_scale));
    return common;
  }

  void advance() {
    ++state_.step;
    if (const auto& workers = strategy_.workers()) workers->set_moment(fmt::format("step {}", state_.step));
    const std::uint64_t every = options_.step.mirror_check_every;
    if (every == 0 || state_.step % every != 0) return;
    queue().drain();
    model_.check_mirrored();
  }

  Strategy& strategy_;
  Model& model_;
  ModelState& state_;
  Loader& loader_;
  TrainerOptions options_;
  std::deque<RecordedPhase> phases_;  // by their first steps
  std::size_t phase_ = 0;             // of the last step
  std::optional<NanTrace> trace_;     // with NanPolicy::kTrace
  TrainingStep step_;                 // after the captured work: it waits when destroyed
  ForwardPass pass_;
  StepOrder order_;
  std::uint64_t host_ns_ = 0;  // in step(), without waits
};

Trainer::Trainer(Strategy& strategy, Model& model, Loader& loader, const TrainerOptions& options) {
  check_training(strategy, model, loader, options);
  impl_ = std::make_unique<Impl>(strategy, model, loader, options);
}

Trainer::~Trainer() = default;

void Trainer::warm_up() { impl_->warm_up(); }
bool Trainer::step() { return impl_->step(); }
std::optional<GlobalBatch> Trainer::take() { return impl_->take(); }
void Trainer::gradients(GlobalBatch batches) { impl_->gradients(std::move(batches)); }
const ForwardPass& Trainer::forward(GlobalBatch batches) { return impl_->forward(std::move(batches)); }
void Trainer::backward() { impl_->backward(); }
void Trainer::all_reduce() { impl_->all_reduce(); }
void Trainer::discard_gradients() { impl_->discard_gradients(); }
void Trainer::apply_gradients() { impl_->apply_gradients(); }
TensorView Trainer::gradient(const std::string& variable, int replica) const {
  return impl_->gradient(variable, replica);
}
MetricSums Trainer::progress() const { return impl_->queue().totals().sums(); }
std::vector<MetricValue> Trainer::metrics() const { return impl_->queue().totals().metrics(); }
MetricSums Trainer::finish() { return impl_->finish(); }
void Trainer::reset_metrics() { impl_->reset_metrics(); }
int Trainer::saved_sets() const noexcept { return impl_->queue().totals().saved_sets(); }
std::size_t Trainer::saved_set_bytes() const noexcept { return impl_->queue().totals().saved_set_bytes(); }
void Trainer::save_totals(int replica, std::byte* into) const { impl_->queue().totals().save(replica, into); }
std::vector<std::vector<std::byte>> Trainer::gather_totals() {
  impl_->queue().drain();
  return impl_->queue().totals().gather();
}
void Trainer::restore_totals(const std::vector<std::vector<std::byte>>& saved) {
  impl_->queue().totals().restore(saved);
}
StepTimes Trainer::times() const noexcept { return impl_->times(); }
std::vector<StepTimes> Trainer::replica_times() const { return impl_->queue().replica_times(); }
std::optional<GradientNorms> Trainer::gradient_norms() const { return impl_->gradient_norms(); }

}  // namespace headrace
