// Running a model over data without training it: exact loss and metrics, or the net's results.
//
//   Evaluation test = model.evaluate(data);            // in one go
//
//   Evaluator evaluator(model, data);                  // prepared, for callers who time the pass
//   evaluator.warm_up();
//   Evaluation test = evaluator.evaluate();
//
//   Evaluator evaluator(model, loader);                // in a training loop of your own: a pass an epoch,
//   Evaluation test = evaluator.evaluate();
//   while (evaluator.step()) {}                        // or a batch at a time
//   MetricSums sums = evaluator.finish();
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/kernels.h"
#include "headrace/devices/tensor.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/loader.h"
#include "headrace/pipeline/record.h"
#include "headrace/train/layers.h"
#include "headrace/train/metrics.h"

namespace headrace {  // inside the floor
class BatchQueue;
class ExampleLosses;
struct ModelState;
}  // namespace headrace

namespace HEADRACE_API headrace {

// What forward() of a Trainer or an Evaluator computed, where it lies: in each replica's device memory, in its
// stream's order. Valid until the next batch, of a trainer until backward(). Strategy::run() gives a replica's
// stream, with which tensors are read and written; the first examples(r) rows are real, the rest is padding.
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

// A view of an image for test-time augmentation: the net's results for the image so moved count with this weight.
struct View {
  float weight = 1;
  ImageShift shift = {};
};

// The image and its mirror image, half and half.
std::vector<View> mirrored_views();
// Half of that, and a quarter each of the image moved by so many pixels down and right, and up and left, each with
// its mirror image: six views.
std::vector<View> mirrored_and_shifted_views(int pixels = 1);

class Model;

struct EvaluateOptions {
  std::uint64_t steps = 0;  // batches; 0: all
  // How the data are read, for one pass: a ConfigError where `epochs`, `start`, `converted`, `trace_spans` or
  // `headspace` are set.
  LoaderOptions input = {};
  // What evaluate() makes of each image, all fields of shape (height, width, channels) alike: the logits, and
  // every other result of the net, are the weighted sum over the views. Empty: the image as it is.
  std::vector<View> views = {};
  // As StepOptions::virtual_shards: the sums are the same bits for any number of replicas.
  int virtual_shards = 0;
  // With the average that the optimizer keeps (WeightAverage) in the place of the weights, which stay as they are.
  // A ConfigError where it keeps none. Running statistics are those of training.
  bool averaged_weights = false;
  // Called with the batches submitted so far and their number, after each; on the thread that evaluates.
  std::function<void(std::uint64_t done, std::uint64_t of)> progress = {};
  // Set by another thread or a signal handler: ends with Error(kCancelled) after the present batch.
  const std::atomic<bool>* stop = nullptr;
};

struct Evaluation {
  double loss = 0;
  double accuracy = 0;  // 0 where nothing counts it
  std::int64_t examples = 0;
  double seconds = 0;
  std::vector<MetricValue> metrics = {};  // as in EpochReport
};

// What one output of a model gives.
struct OutputValues {
  std::string layer;  // the output's name
  Shape shape;        // (examples, ...)
  std::vector<float> values;
};

// Results in the order in which the data set gives its records.
struct Predictions {
  Shape shape;  // (examples, ...)
  std::vector<float> values;
  std::vector<std::uint64_t> records;     // source record of each example
  std::vector<OutputValues> others = {};  // of a model of several outputs: those after the first
};

// Records its passes when it is made, and runs each with the weights as they are then. The model may be trained in
// between, but not compiled: that is a ConfigError at the next call. One thread; errors as a Trainer's.
class Evaluator {
 public:
  // Starts the input engine, which reads ahead, for one pass over the data. Mode::kEvaluate counts loss and
  // metrics and needs a compiled model; Mode::kPredict gives the net's own results, without views. ConfigError for
  // any other mode, and for data that do not fit the net. REQUIRES: the model outlives it.
  Evaluator(Model& model, const Dataset& data, const EvaluateOptions& options = {}, Mode mode = Mode::kEvaluate);
  // Takes the batches of a loader, an epoch of which is a pass. `options.input` counts for nothing. ConfigError
  // for a loader on other devices than the model's, too; with `virtual_shards` it has the strategy's devices
  // repeated() for as many shards. REQUIRES: the model and the loader outlive it.
  Evaluator(Model& model, Loader& loader, const EvaluateOptions& options = {}, Mode mode = Mode::kEvaluate);
  ~Evaluator();  // waits for what was submitted
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  // Does all of a batch once, with no examples: a GPU loads a kernel on its first use. Changes no result. Waits.
  void warm_up();

  // One pass over the data, and waits for its end. Error(kCancelled) where `stop` ended it; ConfigError at a
  // second pass over a data set, which was opened for one. REQUIRES: the mode is kEvaluate; of predict(),
  // kPredict.
  Evaluation evaluate();
  Predictions predict();
  // evaluate() for those who are stopped themselves: the sums, or nothing where `stop` ended the pass.
  std::optional<MetricSums> pass();

  // A pass in pieces, for Mode::kEvaluate. Submits the next batch; false at the end of the data.
  bool step();
  // step() in pieces: the next batch, and its forward pass, which is to be looked at. Not with virtual shards.
  std::optional<GlobalBatch> take();
  const ForwardPass& forward(GlobalBatch batches);
  // Sums over the batches since the last reset, which each pass() begins with: waits for them.
  MetricSums finish();
  // Of the same batches, as EpochReport::metrics.
  std::vector<MetricValue> metrics() const;
  void reset_metrics();

 private:
  class HEADRACE_HIDDEN Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace
