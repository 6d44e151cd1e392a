#include "headrace/train/engine/evaluator.h"

#include <algorithm>

#include "headrace/train/engine/capture.h"
#include "headrace/train/strategy.h"

namespace headrace {

Evaluator::Evaluator(ModelState& model, Loader& loader, const BatchRunnerOptions& options,
                     const std::vector<View>& views)
    : model_(model), loader_(loader), runner_(model, loader.fields(), options) {
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
    const TensorView result = views.empty() ? program.result(bound) : ensembles_.back().forward(bound);
    if (!options.loss) return;
    bound.kernels.softmax_cross_entropy(bound.stream, result, runner_.labels(replica),
                                        options.loss->options.label_smoothing, bound.scalars, {},
                                        runner_.sums(replica));
  }));
}

void Evaluator::launch(int replica) {
  model_.strategy->stream(replica).launch(*works_[static_cast<std::size_t>(replica)]);
}

void Evaluator::warm_up() {
  runner_.warm_up([this](int r) { launch(r); });
}

MetricSums Evaluator::run(std::uint64_t steps, const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  runner_.reset_sums();
  const std::uint64_t all = loader_.steps_per_epoch();
  const std::uint64_t expected = steps == 0 ? all : std::min(steps, all);
  for (std::uint64_t done = 0; steps == 0 || done < steps; ++done) {
    std::optional<GlobalBatch> batches = runner_.take(loader_);
    if (!batches) break;
    const bool last = batches->front().position().last_of_epoch;
    runner_.submit(std::move(*batches), {.step = model_.step}, [this](int r) { launch(r); });
    if (progress) progress(done + 1, expected);
    if (last) break;
  }
  runner_.drain();
  return runner_.sums();
}

}  // namespace headrace
