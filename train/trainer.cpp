#include "headrace/train/trainer.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/train/engine/batch_runner.h"
#include "headrace/train/engine/capture.h"
#include "headrace/train/engine/learning_phases.h"
#include "headrace/train/engine/replica_arenas.h"
#include "headrace/train/engine/step_failure.h"
#include "headrace/train/engine/update_plan.h"
#include "headrace/train/strategy.h"

namespace headrace {

class Trainer::Impl {
 public:
  Impl(Strategy& strategy, Model& model, Loader& loader, const TrainerOptions& options)
      : strategy_(strategy),
        model_(model),
        state_(model.state()),
        loader_(loader),
        options_(options),
        plan_(*state_.graph, state_.layout, state_.compiled->optimizer),
        runner_(state_, loader.fields(),
                {.program = {.mode = Mode::kTrain,
                             .rows = loader.local_rows(),
                             .precision = state_.compiled->precision,
                             .seed = options.seed},
                 .loss = state_.compiled->loss,
                 .metrics = state_.compiled->metrics,
                 .in_flight = options.in_flight,
                 .nan = options.nan,
                 .trace = options.trace}),
        reducer_(strategy.collective(), state_.layout.trained_elements(), options.buckets) {
    for (int r = 0; r < strategy.replicas(); ++r) {
      arenas_.emplace_back(state_, r, options.accumulate > 1);
    }
    for (LearningPhase& phase : learning_phases(runner_.program(), state_.layout, state_.graph->size(), plan_)) {
      variants_.push_back({.phase = std::move(phase)});
      for (int r = 0; r < strategy.replicas(); ++r) capture(r, variants_.back());
    }
  }

  void warm_up() {
    std::vector<std::vector<Buffer>> saved;
    for (int r = 0; r < strategy_.replicas(); ++r) saved.push_back(arenas_[index(r)].save(strategy_.stream(r)));
    for (const Variant& variant : variants_) {
      runner_.warm_up([&](int r) { launch(r, variant, true); });
    }
    for (int r = 0; r < strategy_.replicas(); ++r) arenas_[index(r)].restore(strategy_.stream(r), saved[index(r)]);
  }

  // One update. The host only submits: it waits for input, and where too many batches are in flight.
  bool step() {
    const Stopwatch whole;
    choose_variant();
    const std::uint64_t waited = runner_.waited_ns();
    std::int64_t group_examples = 0;
    for (int micro = 0; micro < options_.accumulate; ++micro) {
      std::optional<GlobalBatch> batches = take();
      if (!batches) return false;
      const BatchPosition position = batches->front().position();
      group_examples += position.global_examples;
      const bool last = micro + 1 == options_.accumulate || position.last_of_epoch;
      runner_.submit(std::move(*batches), scalars(position, group_examples),
                     [&](int r) { launch(r, variants_[variant_], last); });
      if (last) break;
    }
    advance();
    host_ns_ += whole.nanoseconds() - (runner_.waited_ns() - waited);
    return true;
  }

  // Every replica's share of the next global batch.
  std::optional<GlobalBatch> take() { return runner_.take(loader_); }

  void gradients(GlobalBatch batches) {
    choose_variant();
    const BatchPosition position = batches.front().position();
    runner_.submit(std::move(batches), scalars(position, position.global_examples),
                   [&](int r) { submit_gradients(r, variants_[variant_].phase); });
  }

  void all_reduce() {
    submit_to_all(strategy_, state_.step, [&](int r) {
      // There is nothing to run beside it.
      const ReplicaStreams one{.compute = strategy_.stream(r), .communication = strategy_.stream(r)};
      reducer_.finish(r, arenas_[index(r)].gradients, one);
      reducer_.join(r, one);
    });
  }

  void apply_gradients() {
    submit_to_all(strategy_, state_.step, [&](int r) {
      if (plan_.clips()) submit_clip(r, variants_[variant_].phase);
      submit_update(r, 0, arenas_[index(r)].gradients.elements());
      submit_followers(r);
      submit_state(r, strategy_.stream(r));
      runner_.extend(r);
    });
    advance();
  }

  MetricSums progress() const { return runner_.sums(); }
  std::vector<MetricValue> metrics() const { return runner_.metrics(); }

  MetricSums finish() {
    runner_.read_tables();
    strategy_.synchronize();
    return runner_.sums();
  }

  void reset_metrics() {
    runner_.reset_sums();
    host_ns_ = 0;
  }

  const BatchRunner& runner() const noexcept { return runner_; }
  BatchRunner& runner() noexcept { return runner_; }

  StepTimes times() const noexcept {
    StepTimes times = runner_.times();
    times.host_ns = host_ns_;
    return times;
  }

 private:
  // A phase's step, recorded for each replica.
  struct Variant {
    LearningPhase phase;
    // Whole steps; with accumulation what follows the last batch of a step, the batches themselves being `micros`.
    std::vector<std::unique_ptr<CapturedWork>> updates = {};
    std::vector<std::unique_ptr<CapturedWork>> micros = {};
  };

  static std::size_t index(int replica) { return static_cast<std::size_t>(replica); }

  // --- what a step is: recorded once a replica and phase, launched every step ---

  void capture(int r, Variant& variant) {
    Stream& stream = strategy_.stream(r);
    const auto submit = [&] { submit_step(r, variant.phase, strategy_.streams(r)); };
    variant.updates.push_back(headrace::capture(stream, submit));
    if (options_.accumulate == 1) return;
    variant.micros.push_back(headrace::capture(stream, [&] {
      submit_gradients(r, variant.phase);
      arenas_[index(r)].accumulate(stream, *kernels(r));
    }));
  }

  // A whole step or, while gradients accumulate, what follows its last batch.
  void submit_step(int r, const LearningPhase& phase, const ReplicaStreams& streams) {
    const TensorView& gradients = arenas_[index(r)].gradients;
    std::int64_t updated = 0;
    const auto update = [&](std::int64_t summed) { submit_update(r, std::exchange(updated, summed), summed); };

    if (options_.accumulate == 1) {
      submit_forward(r);
      if (streams.apart()) submit_state_beside(r, streams);
      submit_backward(r, phase, [&](std::int64_t filled) {
        const std::int64_t summed = reducer_.filled(r, gradients, filled, streams);
        if (updates_early(r) && !plan_.clips()) update(summed);
      });
    } else {
      arenas_[index(r)].begin_group_update(streams.compute, *kernels(r), runner_.group_scale(r));
      if (streams.apart()) submit_state_beside(r, streams);
    }
    const std::int64_t summed = reducer_.finish(r, gradients, streams);
    if (!plan_.clips()) update(summed);
    reducer_.join(r, streams);
    if (plan_.clips()) submit_clip(r, phase);
    update(gradients.elements());
    submit_followers(r);
    if (!streams.apart()) submit_state(r, streams.compute);
  }

  // On a CPU a slice is updated as soon as it is summed, while it is still in the cache; elsewhere as many as
  // there are at once, with few launches.
  bool updates_early(int r) const { return strategy_.device(r).info().host_memory; }

  void submit_gradients(int r, const LearningPhase& phase) {
    submit_forward(r);
    submit_backward(r, phase, [](std::int64_t) {});
  }

  void submit_forward(int r) {
    const Program& program = runner_.program();
    const ProgramBinding bound = runner_.binding(r);
    program.forward(bound);
    runner_.submit_objective(r, program.result(bound), program.result_gradient(bound));
  }

  // `filled(n)`: the gradient arena's elements [0, n) are final.
  void submit_backward(int r, const LearningPhase& phase, const std::function<void(std::int64_t)>& filled) {
    runner_.program().backward(runner_.binding(r), phase.needed, filled);
  }

  // The optimizer on the arenas' elements [begin, end).
  void submit_update(int r, std::int64_t begin, std::int64_t end) {
    plan_.submit(strategy_.stream(r), *kernels(r), arenas_[index(r)], begin, end, runner_.binding(r).scalars);
  }

  // The sums of all replicas' gradients, which are the same on each, are limited; needs all of them.
  void submit_clip(int r, const LearningPhase& phase) {
    arenas_[index(r)].clip_gradients(strategy_.stream(r), *kernels(r), phase.learning);
  }

  // What follows the weights: lookahead, and their average.
  void submit_followers(int r) {
    arenas_[index(r)].follow_update(strategy_.stream(r), *kernels(r), runner_.binding(r).scalars);
  }

  // What is not trained becomes its mean over replicas.
  void submit_state(int r, Stream& stream) {
    arenas_[index(r)].average_state(strategy_.collective(), r, stream, *kernels(r));
  }

  // It is final once the forward pass is done, and read by the next one.
  void submit_state_beside(int r, const ReplicaStreams& streams) {
    streams.communication.follow(streams.compute);
    submit_state(r, streams.communication);
  }

  // A batch, which is the whole step or, while gradients accumulate, a part of it: the last one brings the update.
  void launch(int r, const Variant& variant, bool last) {
    Stream& stream = strategy_.stream(r);
    if (options_.accumulate > 1) stream.launch(*variant.micros[index(r)]);
    if (last) stream.launch(*variant.updates[index(r)]);
  }

  // That of the step's phase.
  void choose_variant() {
    std::size_t due = variant_;
    while (due + 1 < variants_.size() && variants_[due + 1].phase.begin <= state_.step) ++due;
    if (due == variant_) return;
    variant_ = due;
    for (int r = 0; r < strategy_.replicas(); ++r) {
      for (const auto& [begin, end] : variants_[due].phase.silent) {
        const TensorView silent = arenas_[index(r)].slice(begin, end).gradients;
        strategy_.stream(r).fill(silent.data, 0, silent.bytes());
      }
    }
  }

  // --- what changes from step to step ---

  // Of a batch that ends at `group_end` examples into its step. While gradients accumulate they are sums; the
  // update divides by the step's examples, which are known then.
  StepScalars scalars(const BatchPosition& position, std::int64_t group_end) const {
    const bool sums = options_.accumulate > 1 || sums_losses();
    StepScalars common{.step = state_.step};
    common.inverse_global_rows =
        sums ? 1.0F : 1.0F / static_cast<float>(std::max<std::int64_t>(1, position.global_examples));
    common.first_row = static_cast<std::uint64_t>(group_end - position.global_examples);
    plan_.set_rates(state_.step, common, static_cast<float>(state_.learning_rate_scale));
    return common;
  }

  bool sums_losses() const { return state_.compiled->loss.reduction == Reduction::kSum; }

  void advance() {
    ++state_.step;
    if (options_.mirror_check_every == 0 || state_.step % options_.mirror_check_every != 0) return;
    runner_.drain();
    model_.check_mirrored();
  }

  Kernels* kernels(int r) const { return strategy_.device(r).kernels(); }

  Strategy& strategy_;
  Model& model_;
  ModelState& state_;
  Loader& loader_;
  TrainerOptions options_;
  UpdatePlan plan_;
  std::vector<ReplicaArenas> arenas_;
  std::deque<Variant> variants_;  // by the beginning of their phases
  std::size_t variant_ = 0;       // that of the last step
  BatchRunner runner_;            // after what its work uses: it waits when destroyed
  Reducer reducer_;
  std::uint64_t host_ns_ = 0;  // in step(), without waits
};

namespace {

void check_trainer(const Strategy& strategy, const Model& model, const TrainerOptions& options) {
  if (&strategy != &model.strategy()) {
    throw ConfigError("the model belongs to another strategy (" + model.strategy().to_string() + ")",
                      "build it with the strategy that trains it");
  }
  model.state().require_compiled("training");
  if (options.accumulate < 1 || options.in_flight < 1) {
    throw ConfigError("accumulate and in_flight must be at least 1, got " + std::to_string(options.accumulate) +
                      " and " + std::to_string(options.in_flight));
  }
}

}  // namespace

Trainer::Trainer(Strategy& strategy, Model& model, Loader& loader, const TrainerOptions& options) {
  check_trainer(strategy, model, options);
  impl_ = std::make_unique<Impl>(strategy, model, loader, options);
}

Trainer::~Trainer() = default;

void Trainer::warm_up() { impl_->warm_up(); }
bool Trainer::step() { return impl_->step(); }
std::optional<GlobalBatch> Trainer::take() { return impl_->take(); }
void Trainer::gradients(GlobalBatch batches) { impl_->gradients(std::move(batches)); }
void Trainer::all_reduce() { impl_->all_reduce(); }
void Trainer::apply_gradients() { impl_->apply_gradients(); }
MetricSums Trainer::progress() const { return impl_->progress(); }
std::vector<MetricValue> Trainer::metrics() const { return impl_->metrics(); }
MetricSums Trainer::finish() { return impl_->finish(); }
void Trainer::reset_metrics() { impl_->reset_metrics(); }
std::size_t Trainer::saved_totals_bytes() const noexcept { return impl_->runner().saved_totals_bytes(); }
void Trainer::save_totals(int replica, std::byte* into) const { impl_->runner().save_totals(replica, into); }
void Trainer::restore_totals(const std::vector<std::vector<std::byte>>& saved) {
  impl_->runner().restore_totals(saved);
}
StepTimes Trainer::times() const noexcept { return impl_->times(); }

}  // namespace headrace
