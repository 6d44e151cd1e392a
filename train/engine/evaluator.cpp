#include "headrace/train/engine/evaluator.h"

#include <algorithm>

#include "headrace/train/engine/capture.h"
#include "headrace/train/engine/step_failure.h"
#include "headrace/train/strategy.h"

namespace headrace {

Evaluator::Evaluator(ModelState& model, Loader& loader, const BatchRunnerOptions& options,
                     const std::vector<View>& views)
    : model_(model),
      loader_(loader),
      averaged_weights_(options.averaged_weights),
      runner_(model, loader.fields(), options) {
  for (int r = 0; r < model.strategy->replicas(); ++r) capture(r, options, views);
}

void Evaluator::capture(int replica, const BatchRunnerOptions& options, const std::vector<View>& views) {
  const ProgramBinding bound = runner_.binding(replica);
  const Program& program = runner_.program();
  if (!views.empty()) {
    ensembles_.emplace_back(*model_.graph, program, bound, views);
  }
  works_.push_back(headrace::capture(bound.stream, [&] {
    if (views.empty()) program.forward(bound);
    const std::vector<TensorView> results =
        views.empty() ? program.results(bound) : std::vector{ensembles_.back().forward(bound)};
    if (options.loss) runner_.submit_objective(replica, results, {});
  }));
}

void Evaluator::launch(int replica) {
  model_.strategy->stream(replica).launch(*works_[static_cast<std::size_t>(replica)]);
}

void Evaluator::bring_up_to_date() {
  if (!averaged_weights_) return;
  submit_to_all(*model_.strategy, model_.step, [this](int r) { round_average(model_, r); });
}

void Evaluator::warm_up() {
  bring_up_to_date();
  runner_.warm_up([this](int r) { launch(r); });
}

std::optional<MetricSums> Evaluator::run(const EvaluationPass& pass) {
  bring_up_to_date();
  runner_.reset_sums();
  const std::uint64_t all = loader_.steps_per_epoch();
  const std::uint64_t batches = pass.steps == 0 ? all : std::min(pass.steps, all);
  for (std::uint64_t done = 0; done < batches; ++done) {
    if (pass.stop != nullptr && pass.stop->load(std::memory_order_relaxed)) return std::nullopt;
    std::optional<GlobalBatch> batch = runner_.take(loader_);
    if (!batch) break;
    runner_.submit(std::move(*batch), {.step = model_.step}, [this](int r) { launch(r); });
    if (pass.progress) pass.progress(done + 1, batches);
  }
  runner_.read_tables();
  return runner_.sums();
}

}  // namespace headrace
