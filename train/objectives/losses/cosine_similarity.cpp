// The loss of the angle between two vectors.
#include "headrace/train/losses.h"
#include "headrace/train/objectives/losses/result_checks.h"

namespace headrace {
namespace {

class CosineSimilarity final : public LossFunction {
 public:
  std::string name() const override { return "cosine_similarity"; }
  void check_result(const ResultInfo& result) const override { check_vectors(name(), result); }
  void check_labels(const ResultInfo& result, const Field& labels) const override {
    check_vector_targets(name(), result, labels);
  }
  std::optional<ResultTask> task(const ResultInfo&) const override { return ResultTask{}; }
  bool takes_weights() const override { return true; }
  std::string options_json() const override { return "{}"; }

  void submit(const LossCall& call) const override {
    call.kernels.cosine_loss(call.stream, call.result, call.labels, {call.scalars, call.weights}, call.gradient,
                             call.sums);
  }
};

}  // namespace

Loss cosine_similarity(Reduction reduction) {
  Loss loss(std::make_shared<CosineSimilarity>());
  loss.reduction = reduction;
  return loss;
}

}  // namespace headrace
