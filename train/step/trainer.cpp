#include "headrace/train/trainer.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/train/model/submission.h"
#include "headrace/train/step/capture.h"
#include "headrace/train/step/loop_checks.h"
#include "headrace/train/step/nan_trace.h"
#include "headrace/train/step/step_order.h"
#include "headrace/train/step/training_step.h"
#include "headrace/train/strategy.h"

namespace headrace {

// Which step comes next, and its recordings; what a step is stands in training_step.cpp.
class Trainer::Impl {
 public:
  Impl(Strategy& strategy, Model& model, Loader& loader, const TrainerOptions& options)
      : strategy_(strategy),
        model_(model),
        state_(model.state()),
        loader_(loader),
        options_(options),
        step_(state_, loader, options),
        pass_(state_, runner(), loader.fields()),
        order_(options.step.accumulate > 1) {
    if (options.first_step) state_.step = *options.first_step;
    state_.input = describe_input(loader.dataset());
    if (options.step.nan == NanPolicy::kTrace) trace_.emplace(state_, runner());
    const Program& program = runner().program();
    for (LearningPhase& phase : learning_phases(program, state_.layout, state_.graph->size(), step_.plan())) {
      variants_.push_back({.phase = std::move(phase)});
      record_steps(variants_.back());
    }
  }

  void warm_up() {
    std::vector<std::vector<Buffer>> saved;
    for (int r = 0; r < strategy_.replicas(); ++r) saved.push_back(step_.arenas(r).save(strategy_.stream(r)));
    for (const Variant& variant : variants_) runner().warm_up(recorded(variant, true));
    for (int r = 0; r < strategy_.replicas(); ++r) step_.arenas(r).restore(strategy_.stream(r), saved[index(r)]);
  }

  // One update. The host only submits: it waits for input, and where too many batches are in flight.
  bool step() {
    order_.whole();
    const Stopwatch whole;
    const std::uint64_t waited = runner().waited_ns();
    choose_variant();
    std::int64_t examples = 0;
    bool last = false;
    for (int micro = 1; !last; ++micro) {
      std::optional<GlobalBatch> batches = take();
      if (!batches) return false;
      const BatchPosition position = batches->front().position();
      last = micro == options_.step.accumulate || position.last_of_epoch;
      if (micro == 1) step_.begin();
      examples += position.global_examples;
      submit(std::move(*batches), examples, last);
    }
    if (trace_) finish_traced();
    advance();
    host_ns_ += whole.nanoseconds() - (runner().waited_ns() - waited);
    return true;
  }

  // Every replica's share of the next global batch.
  std::optional<GlobalBatch> take() { return runner().take(loader_); }

  const ForwardPass& forward(GlobalBatch batches) {
    if (step_.shards().is_virtual()) {
      throw ConfigError("forward() and backward() of virtual shards come together, for shards share memory",
                        "call gradients(), or train without virtual shards");
    }
    const BatchPosition position = batches.front().position();
    const std::int64_t examples = order_.forward(position.global_examples);
    choose_variant();
    record(forwards_, [this](int r) { step_.submit_forward(r); });
    runner().submit(std::move(batches), scalars(position, examples),
                    {.compute = [this](int r) { strategy_.stream(r).launch(*forwards_[index(r)]); }});
    return pass_;
  }

  void backward() {
    order_.backward();
    Variant& variant = variants_[variant_];
    launch(variant.backwards, [&](int r) { step_.submit_backward(r, variant.phase, step_.streams(r)); });
  }

  void gradients(GlobalBatch batches) {
    if (!step_.shards().is_virtual() && !trace_) {
      forward(std::move(batches));
      return backward();
    }
    const BatchPosition position = batches.front().position();
    const bool first = order_.begins();
    const std::int64_t examples = order_.forward(position.global_examples);
    order_.backward();
    choose_variant();
    if (first) step_.begin();
    submit_gradients(std::move(batches), examples);
  }

  void all_reduce() {
    order_.all_reduce();
    sum_gradients();
  }

  void apply_gradients() {
    order_.apply_gradients();
    update();
    advance();
  }

  void discard_gradients() {
    order_.discard_gradients();
    submit_to_all(strategy_, state_.step, [this](int r) { step_.submit_discard(r); });
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

  MetricSums progress() const { return runner().sums(); }
  std::vector<MetricValue> metrics() const { return runner().metrics(); }

  MetricSums finish() {
    runner().read_tables();
    strategy_.synchronize();
    return runner().sums();
  }

  void reset_metrics() {
    runner().reset_sums();
    host_ns_ = 0;
  }

  StepTimes times() const noexcept {
    StepTimes times = runner().times();
    times.host_ns = host_ns_;
    return times;
  }

  std::vector<StepTimes> replica_times() const { return runner().replica_times(); }

  std::optional<GradientNorms> gradient_norms() const {
    if (step_.measure()) return step_.measure()->read();
    if (!step_.plan().limits_norm()) return std::nullopt;
    return GradientNorms{.all = step_.arenas(0).read_norm(strategy_.stream(0))};
  }

  const BatchRunner& runner() const noexcept { return step_.runner(); }
  BatchRunner& runner() noexcept { return step_.runner(); }

 private:
  using Works = std::vector<std::unique_ptr<CapturedWork>>;

  // A phase's step, recorded.
  struct Variant {
    LearningPhase phase;
    // Of each replica: whole steps or, where a step is in parts, what follows its last batch; the batches
    // themselves are `batches`, one a shard.
    Works updates = {}, batches = {};
    Works backwards = {}, all_reduces = {}, applies = {};  // pieces, one a replica, from their first call on
  };

  static std::size_t index(int number) { return static_cast<std::size_t>(number); }

  // --- recordings, launched every step ---

  void record_steps(Variant& variant) {
    record(variant.updates, [&](int r) {
      if (step_.in_parts()) return step_.submit_rest(r, variant.phase, strategy_.streams(r));
      step_.submit_whole(r, variant.phase, strategy_.streams(r));
    });
    if (!step_.in_parts()) return;
    for (int shard = 0; shard < step_.shards().size(); ++shard) {
      variant.batches.push_back(capture(step_.shards().stream(shard),
                                        [&] { step_.submit_batch(shard, variant.phase, step_.streams(shard)); }));
    }
  }

  // A batch: the whole step, or a part of it, of which the last one brings the update.
  BatchRunner::Work recorded(const Variant& variant, bool last) {
    const auto update = [this, &variant](int r) { strategy_.stream(r).launch(*variant.updates[index(r)]); };
    if (!step_.in_parts()) return {.compute = update};
    BatchRunner::Work work{.compute = [this, &variant](int shard) {
      step_.shards().stream(shard).launch(*variant.batches[index(shard)]);
    }};
    if (last) work.finish = update;
    return work;
  }

  // Of a piece of the step: for all replicas before one is launched, which may then wait for the others.
  template <typename Submit>
  void record(Works& works, const Submit& submit) {
    for (int r = static_cast<int>(works.size()); r < strategy_.replicas(); ++r) {
      works.push_back(capture(strategy_.stream(r), [&] { submit(r); }));
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
    step_.silence(variants_[due].phase);
  }

  // --- what is submitted of them ---

  // A batch that ends at `examples` into its step.
  void submit(GlobalBatch batches, std::int64_t examples, bool last) {
    if (trace_) return submit_gradients(std::move(batches), examples);
    const BatchPosition position = batches.front().position();
    runner().submit(std::move(batches), scalars(position, examples), recorded(variants_[variant_], last));
  }

  // The same without the update, and not recorded: where numbers are traced, each batch is looked at.
  void submit_gradients(GlobalBatch batches, std::int64_t examples) {
    const BatchPosition position = batches.front().position();
    const LearningPhase& phase = variants_[variant_].phase;
    runner().submit(std::move(batches), scalars(position, examples), {.compute = [&](int shard) {
                      if (trace_) trace_->keep_inputs(shard);
                      step_.submit_batch(shard, phase, {.compute = step_.shards().stream(shard)});
                    }});
    if (trace_) trace_->check(phase.needed);
  }

  void finish_traced() {
    sum_gradients();
    update();
    trace_->check_update(state_.step);
  }

  void sum_gradients() {
    Variant& variant = variants_[variant_];
    launch(variant.all_reduces, [&](int r) { step_.submit_all_reduce(r, variant.phase); });
  }

  void update() {
    Variant& variant = variants_[variant_];
    launch(variant.applies, [&](int r) { step_.submit_update(r, variant.phase); });
    submit_to_all(strategy_, state_.step, [this](int r) { runner().extend(r); });
  }

  // --- what changes from step to step ---

  // Of a batch that ends at `group_end` examples into its step. While gradients accumulate they are sums; the
  // update divides by the step's examples, which are known then.
  StepScalars scalars(const BatchPosition& position, std::int64_t group_end) const {
    const bool sums = options_.step.accumulate > 1 || sums_losses();
    StepScalars common{.step = state_.step};
    common.inverse_global_rows =
        sums ? 1.0F : 1.0F / static_cast<float>(std::max<std::int64_t>(1, position.global_examples));
    common.first_row = static_cast<std::uint64_t>(group_end - position.global_examples);
    step_.plan().set_rates(state_.step, common, static_cast<float>(state_.learning_rate_scale));
    return common;
  }

  bool sums_losses() const { return state_.compiled->loss.reduction == Reduction::kSum; }

  void advance() {
    ++state_.step;
    const std::uint64_t every = options_.step.mirror_check_every;
    if (every == 0 || state_.step % every != 0) return;
    runner().drain();
    model_.check_mirrored();
  }

  Strategy& strategy_;
  Model& model_;
  ModelState& state_;
  Loader& loader_;
  TrainerOptions options_;
  std::deque<Variant> variants_;   // by the beginning of their phases
  std::size_t variant_ = 0;        // that of the last step
  Works forwards_;                 // pieces
  std::optional<NanTrace> trace_;  // with NanPolicy::kTrace
  TrainingStep step_;              // after recordings: it waits when destroyed
  ForwardPass pass_;
  StepOrder order_;
  std::uint64_t host_ns_ = 0;  // in step(), without waits
};

namespace {

void check_layers(const Graph& graph, const TrainerOptions& options) {
  for (int id = 0; id < graph.size() && options.step.virtual_shards > 0; ++id) {
    const Layer& layer = graph.layer(id);
    if (!layer.traits(Mode::kTrain).over_replicas) continue;
    throw ConfigError(
        label(layer.name(), layer.kind()) + " is synchronised: it needs all shards of a batch at once",
        "train without virtual shards, or leave it to each shard");
  }
}

void check_batch_counts(const TrainerOptions& options) {
  if (options.step.accumulate < 1 || options.in_flight < 1) {
    throw ConfigError("accumulate and in_flight must be at least 1, got " +
                      std::to_string(options.step.accumulate) + " and " + std::to_string(options.in_flight));
  }
}

}  // namespace

Trainer::Trainer(Strategy& strategy, Model& model, Loader& loader, const TrainerOptions& options) {
  check_model(strategy, model, "training");
  check_loader(strategy, loader, options.step.virtual_shards, "training");
  check_layers(model.graph(), options);
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
int Trainer::saved_sets() const noexcept { return impl_->runner().saved_sets(); }
std::size_t Trainer::saved_set_bytes() const noexcept { return impl_->runner().saved_set_bytes(); }
void Trainer::save_totals(int replica, std::byte* into) const { impl_->runner().save_totals(replica, into); }
void Trainer::restore_totals(const std::vector<std::vector<std::byte>>& saved) {
  impl_->runner().restore_totals(saved);
}
StepTimes Trainer::times() const noexcept { return impl_->times(); }
std::vector<StepTimes> Trainer::replica_times() const { return impl_->replica_times(); }
std::optional<GradientNorms> Trainer::gradient_norms() const { return impl_->gradient_norms(); }

}  // namespace headrace
