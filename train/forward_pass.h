// What forward() of a Trainer or an Evaluator computed, where it lies: in each replica's device memory, in its
// stream's order. Valid until the next batch, of a trainer until backward(). Strategy::run() gives a replica's
// stream, with which tensors are read and written; the first examples(r) rows are real, the rest is padding.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/tensor.h"
#include "headrace/pipeline/record.h"

namespace headrace {  // inside the floor
class BatchQueue;
class ExampleLosses;
struct ModelState;
}  // namespace headrace

namespace HEADRACE_API headrace {

class ForwardPass {
 public:
  // For a trainer or evaluator; `fields` are the data's. REQUIRES: all that is given outlives it.
  ForwardPass(const ModelState& model, const BatchQueue& queue, const Fields& fields);
  ~ForwardPass();

  std::int64_t examples(int replica) const;
  std::int64_t global_examples() const;

  // The model's result, or another of its outputs, f32, (rows, ...): the logits where the loss takes those of a
  // softmax.
  TensorView predictions(int replica, int output = 0) const;
  // The compiled loss's gradient by the predictions, from which backward() begins: write here that of a loss of
  // your own, 0 in the rows of padding. A Trainer's alone.
  TensorView prediction_gradients(int replica, int output = 0) const;
  // What an example's loss counts in it: 1 / global_examples() for a mean; 1 for a sum, and while gradients
  // accumulate, which are divided in the end.
  float gradient_scale() const;
  // A field that loss or metrics use: ConfigError for others.
  TensorView labels(int replica, const std::string& field = "label") const;

  // The compiled loss of each example, whatever the loss is. Waits, and costs more than the step: to look at.
  std::vector<float> example_losses(int replica) const;

 private:
  const ModelState& model_;
  const BatchQueue& queue_;
  Fields fields_;
  mutable std::unique_ptr<ExampleLosses> losses_;  // from the first call on
};

}  // namespace headrace
