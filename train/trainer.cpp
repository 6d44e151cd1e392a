#include "headrace/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/train/engine/batch_runner.h"
#include "headrace/train/engine/capture.h"
#include "headrace/train/engine/learning_phases.h"
#include "headrace/train/engine/loop_checks.h"
#include "headrace/train/engine/replica_arenas.h"
#include "headrace/train/engine/shard_arenas.h"
#include "headrace/train/engine/step_failure.h"
#include "headrace/train/engine/step_order.h"
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
        shard_arenas_(make_shard_arenas(state_, options)),
        runner_(state_, loader.fields(),
                {.program = {.mode = Mode::kTrain,
                             .rows = loader.local_rows(),
                             .precision = state_.compiled->precision,
                             .seed = options.seed},
                 .loss = state_.compiled->loss,
                 .metrics = state_.compiled->metrics,
                 .in_flight = options.in_flight,
                 .nan = options.nan,
                 .trace = options.trace,
                 .virtual_shards = options.virtual_shards,
                 .shard_arenas = &shard_arenas_}),
        reducer_(strategy.collective(), state_.layout.trained_elements(), options.buckets),
        pass_(state_, runner_, loader.fields()),
        order_(options.accumulate > 1) {
    if (options.first_step) state_.step = *options.first_step;
    for (int r = 0; r < strategy.replicas(); ++r) {
      arenas_.emplace_back(state_, r, options.accumulate > 1 && !shards().is_virtual());
    }
    for (LearningPhase& phase : learning_phases(runner_.program(), state_.layout, state_.graph->size(), plan_)) {
      variants_.push_back({.phase = std::move(phase)});
      capture(variants_.back());
    }
  }

  void warm_up() {
    std::vector<std::vector<Buffer>> saved;
    for (int r = 0; r < strategy_.replicas(); ++r) saved.push_back(arenas_[index(r)].save(strategy_.stream(r)));
    for (const Variant& variant : variants_) {
      runner_.warm_up(whole_batch(variant, true));
    }
    for (int r = 0; r < strategy_.replicas(); ++r) arenas_[index(r)].restore(strategy_.stream(r), saved[index(r)]);
  }

  // One update. The host only submits: it waits for input, and where too many batches are in flight.
  bool step() {
    const Stopwatch whole;
    order_.whole();
    choose_variant();
    const std::uint64_t waited = runner_.waited_ns();
    std::int64_t group_examples = 0;
    for (int micro = 0; micro < options_.accumulate; ++micro) {
      std::optional<GlobalBatch> batches = take();
      if (!batches) return false;
      const BatchPosition position = batches->front().position();
      group_examples += position.global_examples;
      const bool last = micro + 1 == options_.accumulate || position.last_of_epoch;
      if (micro == 0) begin_step();
      runner_.submit(std::move(*batches), scalars(position, group_examples),
                     whole_batch(variants_[variant_], last));
      if (last) break;
    }
    advance();
    host_ns_ += whole.nanoseconds() - (runner_.waited_ns() - waited);
    return true;
  }

  // Every replica's share of the next global batch.
  std::optional<GlobalBatch> take() { return runner_.take(loader_); }

  const ForwardPass& forward(GlobalBatch batches) {
    const BatchPosition position = batches.front().position();
    if (shards().is_virtual()) {
      throw ConfigError("forward() and backward() of virtual shards come together, for shards share memory",
                        "call gradients(), or train without virtual shards");
    }
    const std::int64_t group_examples = order_.forward(position.global_examples);
    choose_variant();
    record(forwards_, [&](int r) { submit_forward(r); });
    runner_.submit(std::move(batches), scalars(position, group_examples),
                   {.compute = [&](int r) { strategy_.stream(r).launch(*forwards_[index(r)]); }});
    return pass_;
  }

  void backward() {
    order_.backward();
    Variant& variant = variants_[variant_];
    launch(variant.backwards, [&](int r) {
      submit_backward(r, variant.phase, [](std::int64_t) {});
      if (options_.accumulate > 1) accumulate(r, strategy_.stream(r));
    });
  }

  void gradients(GlobalBatch batches) {
    if (!shards().is_virtual()) {
      forward(std::move(batches));
      return backward();
    }
    const BatchPosition position = batches.front().position();
    const std::int64_t group_examples = order_.forward(position.global_examples);
    order_.backward();
    choose_variant();
    if (group_examples == position.global_examples) begin_step();
    runner_.submit(std::move(batches), scalars(position, group_examples), whole_batch(variants_[variant_], false));
  }

  void all_reduce() {
    order_.all_reduce();
    launch(all_reduces_, [&](int r) {
      // There is nothing to run beside it.
      const ReplicaStreams one{.compute = strategy_.stream(r), .communication = strategy_.stream(r)};
      end_group(r, one.compute);
      merge_shards(r);
      reducer_.finish(r, arenas_[index(r)].gradients, one);
      reducer_.join(r, one);
    });
  }

  void apply_gradients() {
    order_.apply_gradients();
    Variant& variant = variants_[variant_];
    launch(variant.applies, [&](int r) {
      if (plan_.clips()) submit_clip(r, variant.phase);
      submit_update(r, 0, arenas_[index(r)].gradients.elements());
      submit_followers(r);
      submit_state(r, strategy_.stream(r));
    });
    submit_to_all(strategy_, state_.step, [&](int r) { runner_.extend(r); });
    advance();
  }

  void discard_gradients() {
    order_.discard_gradients();
    submit_to_all(strategy_, state_.step, [&](int r) { end_group(r, strategy_.stream(r)); });
  }

  TensorView gradient(const std::string& name, int replica) const {
    const Variable& variable = state_.layout.find(name);
    if (variable.spec.role != VariableRole::kTrained) {
      throw ConfigError("variable '" + name + "' is not trained: it has no gradient");
    }
    const TensorView& all = arenas_.at(index(replica)).gradients;
    return {all.as<float>() + variable.offset, variable.spec.shape, DType::kF32};
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

  StepTimes times() const noexcept {
    StepTimes times = runner_.times();
    times.host_ns = host_ns_;
    return times;
  }

 private:
  using Works = std::vector<std::unique_ptr<CapturedWork>>;

  // A phase's step, recorded.
  struct Variant {
    LearningPhase phase;
    // Of each replica: whole steps; with accumulation or virtual shards what follows the last batch of a step, the
    // batches themselves being `micros`, one a shard.
    Works updates = {}, micros = {};
    Works backwards = {}, applies = {};  // pieces, one a replica, from their first call on
  };

  static std::size_t index(int replica) { return static_cast<std::size_t>(replica); }

  static std::vector<ShardArenas> make_shard_arenas(const ModelState& state, const TrainerOptions& options) {
    const Shards shards(*state.strategy, options.virtual_shards);
    std::vector<ShardArenas> arenas;
    for (int r = 0; r < state.strategy->replicas(); ++r) {
      arenas.emplace_back(state, shards, r, options.accumulate > 1);
    }
    return arenas;
  }

  // --- what a step is: recorded once a replica and phase, launched every step ---

  // Whether a step is recorded in two parts: its batches, and what follows the last of them.
  bool in_parts() const { return options_.accumulate > 1 || shards().is_virtual(); }

  void capture(Variant& variant) {
    for (int r = 0; r < strategy_.replicas(); ++r) {
      variant.updates.push_back(
          headrace::capture(strategy_.stream(r), [&] { submit_step(r, variant.phase, strategy_.streams(r)); }));
    }
    if (!in_parts()) return;
    for (int shard = 0; shard < shards().size(); ++shard) {
      Stream& stream = shards().stream(shard);
      variant.micros.push_back(headrace::capture(stream, [&] {
        submit_gradients(shard, variant.phase);
        if (options_.accumulate > 1) accumulate(shard, stream);
      }));
    }
  }

  // A whole step or, where it is recorded in parts, what follows its last batch.
  void submit_step(int r, const LearningPhase& phase, const ReplicaStreams& streams) {
    const TensorView& gradients = arenas_[index(r)].gradients;
    std::int64_t updated = 0;
    const auto update = [&](std::int64_t summed) { submit_update(r, std::exchange(updated, summed), summed); };

    if (in_parts()) {
      end_group(r, streams.compute);
      merge_shards(r);
      if (streams.apart()) submit_state_beside(r, streams);
    } else {
      submit_forward(r);
      if (streams.apart()) submit_state_beside(r, streams);
      submit_backward(r, phase, [&](std::int64_t filled) {
        const std::int64_t summed = reducer_.filled(r, gradients, filled, streams);
        if (updates_early(r) && !plan_.clips()) update(summed);
      });
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

  void submit_gradients(int shard, const LearningPhase& phase) {
    submit_forward(shard);
    submit_backward(shard, phase, [](std::int64_t) {});
  }

  void submit_forward(int shard) {
    const Program& program = runner_.program();
    const ProgramBinding bound = runner_.binding(shard);
    program.forward(bound);
    runner_.submit_objective(shard, program.result(bound), program.result_gradient(bound));
  }

  // `filled(n)`: the gradient arena's elements [0, n) are final.
  void submit_backward(int shard, const LearningPhase& phase, const std::function<void(std::int64_t)>& filled) {
    runner_.program().backward(runner_.binding(shard), phase.needed, filled);
  }

  // Adds the batch's gradients to those of the step so far.
  void accumulate(int shard, Stream& stream) {
    const int r = shards().replica_of(shard);
    if (!shards().is_virtual()) return arenas_[index(r)].accumulate(stream, kernels(r));
    shard_arenas_[index(r)].accumulate(stream, kernels(r), shard - shards().first_of(r));
  }

  // The step's gradients, of each shard, are the accumulated ones over the examples in all of its batches.
  void end_group(int r, Stream& stream) {
    if (options_.accumulate == 1) return;
    for (int shard = shards().first_of(r); shard < shards().first_of(r + 1); ++shard) {
      const float* scale = runner_.group_scale(shard);
      if (!shards().is_virtual()) return arenas_[index(r)].begin_group_update(stream, kernels(r), scale);
      shard_arenas_[index(r)].end_group(stream, kernels(r), shard - shards().first_of(r), scale);
    }
  }

  // The replica's gradients become the sum over its virtual shards: the leaves below it of one tree over all.
  void merge_shards(int r) {
    if (!shards().is_virtual()) return;
    shard_arenas_[index(r)].sum_gradients(strategy_.stream(r), kernels(r), arenas_[index(r)].gradients);
  }

  // The optimizer on the arenas' elements [begin, end).
  void submit_update(int r, std::int64_t begin, std::int64_t end) {
    plan_.submit(strategy_.stream(r), kernels(r), arenas_[index(r)], begin, end, scalars_of(r));
  }

  // The sums of all replicas' gradients, which are the same on each, are limited; needs all of them.
  void submit_clip(int r, const LearningPhase& phase) {
    arenas_[index(r)].clip_gradients(strategy_.stream(r), kernels(r), phase.learning);
  }

  // What follows the weights: lookahead, and their average.
  void submit_followers(int r) { arenas_[index(r)].follow_update(strategy_.stream(r), kernels(r), scalars_of(r)); }

  // What is not trained becomes its mean over replicas.
  void submit_state(int r, Stream& stream) {
    arenas_[index(r)].average_state(strategy_.collective(), r, stream, kernels(r), shard_arenas_[index(r)]);
  }

  // It is final once the forward pass is done, and read by the next one.
  void submit_state_beside(int r, const ReplicaStreams& streams) {
    streams.communication.follow(streams.compute);
    submit_state(r, streams.communication);
  }

  // A batch: the whole step, or a part of it, of which the last one brings the update.
  BatchRunner::Work whole_batch(const Variant& variant, bool last) {
    const auto update = [this, &variant](int r) { strategy_.stream(r).launch(*variant.updates[index(r)]); };
    if (!in_parts()) return {.compute = update};
    BatchRunner::Work work{
        .compute = [this, &variant](int shard) { shards().stream(shard).launch(*variant.micros[index(shard)]); }};
    if (last) work.finish = update;
    return work;
  }

  // Before its first batch.
  void begin_step() {
    for (int shard = 0; shards().is_virtual() && shard < shards().size(); ++shard) {
      const int r = shards().replica_of(shard);
      shards().follow_replica(shard);
      shard_arenas_[index(r)].begin_step(shards().stream(shard), shard - shards().first_of(r));
    }
  }

  // Of a piece of the step: for all replicas before one is launched, which may then wait for the others.
  template <typename Submit>
  void record(Works& works, const Submit& submit) {
    for (int r = static_cast<int>(works.size()); r < strategy_.replicas(); ++r) {
      works.push_back(headrace::capture(strategy_.stream(r), [&] { submit(r); }));
    }
  }

  template <typename Submit>
  void launch(Works& works, const Submit& submit) {
    record(works, submit);
    submit_to_all(strategy_, state_.step, [&](int r) { strategy_.stream(r).launch(*works[index(r)]); });
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
        shard_arenas_[index(r)].clear_gradients(strategy_.stream(r), begin, end);
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
    plan_.set_rates(state_.step, common);
    return common;
  }

  bool sums_losses() const { return state_.compiled->loss.reduction == Reduction::kSum; }

  void advance() {
    ++state_.step;
    if (options_.mirror_check_every == 0 || state_.step % options_.mirror_check_every != 0) return;
    runner_.drain();
    model_.check_mirrored();
  }

  const Shards& shards() const { return runner_.shards(); }
  // In a replica's memory: what all of its shards' have in common.
  const StepScalars* scalars_of(int r) const { return runner_.binding(shards().first_of(r)).scalars; }
  Kernels& kernels(int r) const { return shards().kernels(r); }

  Strategy& strategy_;
  Model& model_;
  ModelState& state_;
  Loader& loader_;
  TrainerOptions options_;
  UpdatePlan plan_;
  std::vector<ReplicaArenas> arenas_;
  std::vector<ShardArenas> shard_arenas_;
  std::deque<Variant> variants_;  // by the beginning of their phases
  std::size_t variant_ = 0;       // that of the last step
  Works forwards_, all_reduces_;  // pieces
  BatchRunner runner_;            // after what its work uses: it waits when destroyed
  Reducer reducer_;
  ForwardPass pass_;
  StepOrder order_;
  std::uint64_t host_ns_ = 0;  // in step(), without waits
};

namespace {

void check_shards(Strategy& strategy, const Loader& loader, const TrainerOptions& options) {
  if (const int shards = Shards(strategy, options.virtual_shards).size(); loader.devices().size() != shards) {
    throw ConfigError(fmt::format("the loader divides its batches among {} replicas, the training among {} shards",
                                  loader.devices().size(), shards),
                      "open it on the strategy's devices, each repeated() once for each of its virtual shards");
  }
}

void check_batch_counts(const TrainerOptions& options) {
  if (options.accumulate < 1 || options.in_flight < 1) {
    throw ConfigError("accumulate and in_flight must be at least 1, got " + std::to_string(options.accumulate) +
                      " and " + std::to_string(options.in_flight));
  }
}

}  // namespace

Trainer::Trainer(Strategy& strategy, Model& model, Loader& loader, const TrainerOptions& options) {
  check_loop(strategy, model, loader, "training");
  check_shards(strategy, loader, options);
  check_batch_counts(options);
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
MetricSums Trainer::progress() const { return impl_->progress(); }
std::vector<MetricValue> Trainer::metrics() const { return impl_->metrics(); }
MetricSums Trainer::finish() { return impl_->finish(); }
void Trainer::reset_metrics() { impl_->reset_metrics(); }
StepTimes Trainer::times() const noexcept { return impl_->times(); }

}  // namespace headrace
