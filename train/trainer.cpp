#include "headrace/train/trainer.h"

#include <algorithm>
#include <utility>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/train/engine/batch_runner.h"
#include "headrace/train/engine/capture.h"
#include "headrace/train/engine/replica_arenas.h"
#include "headrace/train/engine/update_plan.h"
#include "headrace/train/reducer.h"
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
                 .in_flight = options.in_flight,
                 .nan = options.nan,
                 .trace = options.trace}),
        reducer_(strategy.collective(), state_.layout.trained_elements()) {
    for (int r = 0; r < strategy.replicas(); ++r) {
      arenas_.emplace_back(state_, r, options.accumulate > 1 ? Accumulation::kYes : Accumulation::kNo);
    }
    for (int r = 0; r < strategy.replicas(); ++r) capture(r);
  }

  // One update. The host only submits: it waits for input, and where too many batches are in flight.
  bool step() {
    const Stopwatch whole;
    const std::uint64_t waited = runner_.waited_ns();
    std::int64_t group_examples = 0;
    for (int micro = 0; micro < options_.accumulate; ++micro) {
      std::optional<GlobalBatch> batches = take();
      if (!batches) return false;
      const BatchPosition position = batches->front().position();
      group_examples += position.global_examples;
      const bool last = micro + 1 == options_.accumulate || position.last_of_epoch;
      runner_.submit(std::move(*batches), scalars(position, group_examples), [&](int r) { launch(r, last); });
      if (last) break;
    }
    advance();
    host_ns_ += whole.nanoseconds() - (runner_.waited_ns() - waited);
    return true;
  }

  // Every replica's share of the next global batch.
  std::optional<GlobalBatch> take() { return runner_.take(loader_); }

  void gradients(GlobalBatch batches) {
    const BatchPosition position = batches.front().position();
    runner_.submit(std::move(batches), scalars(position, position.global_examples),
                   [&](int r) { submit_gradients(r, [](std::int64_t) {}); });
  }

  void all_reduce() {
    for (int r = 0; r < strategy_.replicas(); ++r) {
      reducer_.finish(r, arenas_[index(r)].gradients, strategy_.stream(r));
    }
  }

  void apply_gradients() {
    for (int r = 0; r < strategy_.replicas(); ++r) {
      submit_update(r, 0, arenas_[index(r)].gradients.elements());
      submit_state(r);
      runner_.extend(r);
    }
    advance();
  }

  MetricSums progress() const noexcept { return runner_.sums(); }

  MetricSums finish() {
    runner_.drain();
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
  static std::size_t index(int replica) { return static_cast<std::size_t>(replica); }

  // --- what a step is: recorded once a replica, launched every step ---

  void capture(int r) {
    Stream& stream = strategy_.stream(r);
    ReplicaArenas& arenas = arenas_[index(r)];
    updates_.push_back(headrace::capture(stream, [&] {
      std::int64_t updated = 0;
      if (options_.accumulate == 1) {
        // A slice is updated as soon as it is summed, while it is still in the cache.
        submit_gradients(r, [&](std::int64_t filled) {
          const std::int64_t summed = reducer_.filled(r, arenas.gradients, filled, stream);
          submit_update(r, std::exchange(updated, summed), summed);
        });
      } else {
        arenas.begin_group_update(stream, *kernels(r), runner_.group_scale(r));
      }
      reducer_.finish(r, arenas.gradients, stream);
      submit_update(r, updated, arenas.gradients.elements());
      submit_state(r);
    }));
    if (options_.accumulate == 1) return;
    micros_.push_back(headrace::capture(stream, [&] {
      submit_gradients(r, [](std::int64_t) {});
      arenas.accumulate(stream, *kernels(r));
    }));
  }

  // Forward, loss, backward. `filled(n)`: the gradient arena's elements [0, n) are final.
  void submit_gradients(int r, const std::function<void(std::int64_t)>& filled) {
    const Program& program = runner_.program();
    const ProgramBinding bound = runner_.binding(r);
    program.forward(bound);
    bound.kernels.softmax_cross_entropy(bound.stream, program.result(bound), runner_.labels(r),
                                        state_.compiled->loss.options.label_smoothing, bound.scalars,
                                        program.result_gradient(bound), runner_.sums(r));
    program.backward(bound, filled);
  }

  // The optimizer on the arenas' elements [begin, end).
  void submit_update(int r, std::int64_t begin, std::int64_t end) {
    plan_.submit(strategy_.stream(r), *kernels(r), arenas_[index(r)], begin, end, runner_.binding(r).scalars);
  }

  // What is not trained becomes its mean over replicas.
  void submit_state(int r) {
    arenas_[index(r)].average_state(strategy_.collective(), r, strategy_.stream(r), *kernels(r));
  }

  // A batch, which is the whole step or, while gradients accumulate, a part of it: the last one brings the update.
  void launch(int r, bool last) {
    Stream& stream = strategy_.stream(r);
    if (options_.accumulate > 1) stream.launch(*micros_[index(r)]);
    if (last) stream.launch(*updates_[index(r)]);
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

  bool sums_losses() const { return state_.compiled->loss.options.reduction == Reduction::kSum; }

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
  // Whole steps; with accumulation what follows the last batch of a step, the batches themselves being `micros_`.
  std::vector<std::unique_ptr<CapturedWork>> updates_;
  std::vector<std::unique_ptr<CapturedWork>> micros_;
  BatchRunner runner_;  // after what its work uses: it waits when destroyed
  Reducer reducer_;
  std::uint64_t host_ns_ = 0;  // in step(), without waits
};

namespace {

void check(const Strategy& strategy, const Model& model, const TrainerOptions& options) {
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
  check(strategy, model, options);
  impl_ = std::make_unique<Impl>(strategy, model, loader, options);
}

Trainer::~Trainer() = default;

bool Trainer::step() { return impl_->step(); }
std::optional<GlobalBatch> Trainer::take() { return impl_->take(); }
void Trainer::gradients(GlobalBatch batches) { impl_->gradients(std::move(batches)); }
void Trainer::all_reduce() { impl_->all_reduce(); }
void Trainer::apply_gradients() { impl_->apply_gradients(); }
MetricSums Trainer::progress() const noexcept { return impl_->progress(); }
MetricSums Trainer::finish() { return impl_->finish(); }
void Trainer::reset_metrics() { impl_->reset_metrics(); }
StepTimes Trainer::times() const noexcept { return impl_->times(); }

}  // namespace headrace
