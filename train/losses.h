// What training makes small.
#pragma once

#include <string>

namespace headrace {

// What the gradient is of, over the real examples of a step. What is reported is the mean always.
enum class Reduction { kMean, kSum };

struct SparseCrossEntropyOptions {
  // True: the model's result are logits. False: it ends in softmax (which is then fused with the loss: the
  // same value, without the loss of precision).
  bool from_logits = true;
  float label_smoothing = 0;
  Reduction reduction = Reduction::kMean;
};

// Labels are class numbers, i64, one an example.
struct Loss {
  SparseCrossEntropyOptions options;
  std::string label_field = "label";
};

Loss sparse_categorical_crossentropy(const SparseCrossEntropyOptions& options = {});

}  // namespace headrace
