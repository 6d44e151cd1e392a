#include "headrace/train/fit/evaluator.h"

#include <algorithm>

#include "headrace/train/model/submission.h"
#include "headrace/train/strategy.h"

namespace headrace {

Evaluator::Evaluator(ModelState& model, Loader& loader, const BatchQueueOptions& options,
                     const std::vector<View>& views)
    : model_(model),
      loader_(loader),
      averaged_weights_(options.averaged_weights),
      queue_(model, loader.fields(), options) {
  for (int shard = 0; shard < queue_.shards().local_shards(); ++shard) capture(shard, options, views);
}

void Evaluator::capture(int shard, const BatchQueueOptions& options, const std::vector<View>& views) {
  const ProgramBinding bound = queue_.program().binding(shard);
  const Program& program = queue_.program().program();
  if (!views.empty()) {
    ensembles_.emplace_back(*model_.graph, program, bound, views);
  }
  works_.push_back(headrace::capture(bound.stream, [&] {
    if (views.empty()) program.forward(bound);
    const std::vector<TensorView> results =
        views.empty() ? program.results(bound) : ensembles_.back().forward(bound);
    if (options.loss) queue_.program().submit_objective(shard, results, {});
  }));
}

void Evaluator::launch(int shard) {
  queue_.shards().stream(shard).launch(*works_[static_cast<std::size_t>(shard)]);
}

void Evaluator::bring_up_to_date() {
  if (!averaged_weights_) return;
  submit_to_all(*model_.strategy, model_.step, [this](int r) { round_average(model_, r); });
}

void Evaluator::warm_up() {
  bring_up_to_date();
  queue_.warm_up({.compute = [this](int shard) { launch(shard); }});
}

void Evaluator::submit(GlobalBatch batches) {
  queue_.submit(std::move(batches), {.step = model_.step}, {.compute = [this](int shard) { launch(shard); }});
}

std::optional<MetricSums> Evaluator::run(const EvaluationPass& pass) {
  bring_up_to_date();
  queue_.reset();
  const std::uint64_t all = loader_.steps_per_epoch();
  const std::uint64_t batches = pass.steps == 0 ? all : std::min(pass.steps, all);
  for (std::uint64_t done = 0; done < batches; ++done) {
    if (pass.stop != nullptr && pass.stop->load(std::memory_order_relaxed)) return std::nullopt;
    std::optional<GlobalBatch> batch = queue_.take(loader_);
    if (!batch) break;
    submit(std::move(*batch));
    if (pass.progress) pass.progress(done + 1, batches);
  }
  queue_.finish();
  return queue_.totals().sums();
}

}  // namespace headrace
