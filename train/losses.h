// What training makes small.
#pragma once

#include <string>

namespace headrace {

struct SparseCrossEntropyOptions {
  // True: the model's result are logits. False: it ends in softmax (which is then fused with the loss: the
  // same value, without the loss of precision).
  bool from_logits = true;
  float label_smoothing = 0;
};

// Labels are class numbers, i64, one an example; the mean is over the real examples of the global batch.
struct Loss {
  SparseCrossEntropyOptions options;
  std::string label_field = "label";
};

Loss sparse_categorical_crossentropy(const SparseCrossEntropyOptions& options = {});

}  // namespace headrace
