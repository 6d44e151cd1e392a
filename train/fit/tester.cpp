#include "headrace/train/tester.h"

#include <utility>

#include "headrace/train/fit/evaluator.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/step/loop_checks.h"

namespace headrace {

class Tester::Impl {
 public:
  Impl(Model& model, Loader& loader)
      : loader_(loader),
        evaluator_(model.state(), loader,
                   {.program = {.mode = Mode::kEvaluate,
                                .rows = loader.local_rows(),
                                .precision = model.state().compiled->precision},
                    .loss = model.state().compiled->loss,
                    .metrics = model.state().compiled->metrics}),
        pass_(model.state(), evaluator_.queue(), loader.fields()) {}

  std::optional<GlobalBatch> take() { return evaluator_.queue().take(loader_); }
  const ForwardPass& forward(GlobalBatch batches) {
    evaluator_.submit(std::move(batches));
    return pass_;
  }
  MetricSums finish() {
    evaluator_.queue().finish();
    return evaluator_.queue().totals().sums();
  }
  BatchQueue& queue() noexcept { return evaluator_.queue(); }

 private:
  Loader& loader_;
  Evaluator evaluator_;
  ForwardPass pass_;
};

Tester::Tester(Strategy& strategy, Model& model, Loader& loader) {
  check_loop(strategy, model, loader, "testing");
  impl_ = std::make_unique<Impl>(model, loader);
}

Tester::~Tester() = default;

bool Tester::step() {
  std::optional<GlobalBatch> batches = take();
  if (batches) forward(*std::move(batches));
  return batches.has_value();
}

std::optional<GlobalBatch> Tester::take() { return impl_->take(); }
const ForwardPass& Tester::forward(GlobalBatch batches) { return impl_->forward(std::move(batches)); }
MetricSums Tester::finish() { return impl_->finish(); }
std::vector<MetricValue> Tester::metrics() const { return impl_->queue().totals().metrics(); }
void Tester::reset_metrics() { impl_->queue().reset(); }

}  // namespace headrace
