#include "headrace/train/losses/mean_over_elements.h"

namespace headrace {

Loss binary_crossentropy(const BinaryCrossEntropyOptions& options) {
  return mean_over_elements(
      "binary_crossentropy",
      options.from_logits ? ElementLoss::kBinaryFromLogits : ElementLoss::kBinaryFromProbabilities,
      options.reduction);
}

}  // namespace headrace
