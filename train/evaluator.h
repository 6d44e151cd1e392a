// Runs a model over data without training it, for exact loss and metrics or for the net's results.
//
//   Evaluation test = model.evaluate(data);            // in one go
//
//   Evaluator evaluator(model, data);                  // prepared, for callers who time the pass
//   evaluator.warm_up();
//   Evaluation test = evaluator.evaluate();
//
//   Evaluator evaluator(model, loader);                // in a custom training loop: a pass an epoch,
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

// The results of forward() of a Trainer or an Evaluator, in place: in each replica's device memory, in its
// stream's order. Valid until the next batch; for a trainer, until backward(). Read and write tensors on the
// replica's stream, from Strategy::run(). The first examples(r) rows are real, the rest is padding.
class ForwardPass {
 public:
  // For a trainer or evaluator; `fields` are the data's. REQUIRES: all arguments outlive it.
  ForwardPass(const ModelState& model, const BatchQueue& queue, const Fields& fields);
  ~ForwardPass();

  std::int64_t examples(int replica) const;
  std::int64_t global_examples() const;

  // Returns output number `output` of the model, f32, (rows, ...): the logits if the loss takes those of a
  // softmax.
  TensorView predictions(int replica, int output = 0) const;
  // Returns the compiled loss's gradient with respect to the predictions, from which backward() begins. For a
  // custom loss, write its gradient here, 0 in padding rows. Trainer only.
  TensorView prediction_gradients(int replica, int output = 0) const;
  // Returns the weight of one example's loss in that gradient: 1 / global_examples() for a mean; 1 for a sum, and
  // while gradients accumulate, because those are divided at the end.
  float gradient_scale() const;
  // Returns a field that the loss or metrics use. Throws ConfigError for other fields.
  TensorView labels(int replica, const std::string& field = "label") const;

  // Returns each example's compiled loss, for any loss. Waits, and costs more than the step: for inspection.
  std::vector<float> example_losses(int replica) const;

 private:
  const ModelState& model_;
  const BatchQueue& queue_;
  Fields fields_;
  mutable std::unique_ptr<ExampleLosses> losses_;  // created by the first call
};

// A view of an image for test-time augmentation: the net's results for the moved image count with this weight.
struct View {
  float weight = 1;
  ImageShift shift = {};
};

// Returns the image and its mirror image, half each.
std::vector<View> mirrored_views();
// Returns six views: mirrored_views() with half the weight; the image moved down and right by `pixels`, and up and
// left, with a quarter each, each with its mirror image.
std::vector<View> mirrored_and_shifted_views(int pixels = 1);

class Model;

struct EvaluateOptions {
  std::uint64_t steps = 0;  // batches; 0: all
  // How the data are read in one pass. ConfigError if `epochs`, `start`, `converted`, `trace_spans` or `headspace`
  // is set, or `in_order` is false.
  LoaderOptions input = {};
  // The views that evaluate() makes of each image, applied to all fields of shape (height, width, channels): the
  // logits, and every other result of the net, are the weighted sum over the views. Empty: the image as it is.
  std::vector<View> views = {};
  // See StepOptions::virtual_shards: the sums have the same bits for any number of replicas.
  int virtual_shards = 0;
  // Evaluates with the optimizer's average (WeightAverage) in place of the weights, which stay unchanged.
  // ConfigError if it keeps none. Running statistics are those of training.
  bool averaged_weights = false;
  // Called on the evaluating thread after each batch, with the batches submitted so far and their total.
  std::function<void(std::uint64_t done, std::uint64_t of)> progress = {};
  // Set by another thread or a signal handler: ends with Error(kCancelled) after the current batch.
  const std::atomic<bool>* stop = nullptr;
};

struct Evaluation {
  double loss = 0;
  double accuracy = 0;  // 0 if nothing counts it
  std::int64_t examples = 0;
  double seconds = 0;
  std::vector<MetricValue> metrics = {};  // as in EpochReport
};

// The results of one output of a model.
struct OutputValues {
  std::string layer;  // the output's name
  Shape shape;        // (examples, ...)
  std::vector<float> values;
};

// Results in the order of the data set's records.
struct Predictions {
  Shape shape;  // (examples, ...)
  std::vector<float> values;
  std::vector<std::uint64_t> records;     // source record of each example
  std::vector<OutputValues> others = {};  // outputs after the first, if the model has several
  // What the values are; std::nullopt: the model was not compiled and does not end in a softmax, or its loss does
  // not say it.
  std::optional<ResultTask> task = std::nullopt;
};

// Returns the class that is predicted for an example: that of its largest value, or of one value 1 or 0.
// std::nullopt for results that are not of one class or hold NaN, and of one value whose task is not known.
std::optional<std::int64_t> predicted_class(const Predictions& predictions, std::size_t example);

// The names and labels of predicted examples, as far as their source knows them.
struct ExampleNames {
  std::vector<std::string> names;                   // files, members of archives
  std::vector<std::optional<std::int64_t>> labels;  // known without reading the record
};

// Returns names and labels of the records. With `net_classes`, labels are numbers among these, by the name of the
// class; a source without classes has none then.
ExampleNames name_examples(const std::vector<std::uint64_t>& records, const Source& source,
                           const std::vector<std::string>& net_classes = {});

// One example of a classification.
struct ClassifiedExample {
  std::uint64_t record = 0;  // of the source
  std::int64_t label = 0, prediction = 0;
  double loss = 0;  // the cross-entropy of its class
};

// Predictions beside the labels. An example whose label is no class of the net counts nowhere.
struct Classification {
  std::int64_t classes = 0;                   // of the net; 2 if it is binary
  std::vector<std::uint64_t> confusion = {};  // examples by label, then by prediction: classes * classes
  std::vector<ClassifiedExample> worst = {};  // those with the highest loss, the highest first

  std::uint64_t count(std::int64_t label, std::int64_t prediction) const {
    return confusion[static_cast<std::size_t>(label * classes + prediction)];
  }
};

// Compares predictions with the labels of the source that their records are from; keeps up to `worst` examples.
// Equal losses are ordered by record. Throws ConfigError if the net's result is not of one class of up to 10,000,
// or if the source's labels are no class numbers; throws as the source does for records that must be read.
Classification classify(const Predictions& predictions, const Source& source, std::size_t worst = 20);

// Records its passes on construction and runs each with the current weights. The model may be trained in between,
// but not compiled: the next call then throws ConfigError. Use from one thread; errors are reported as by Trainer.
class Evaluator {
 public:
  // Starts the input engine, which reads ahead, for one pass over the data. Mode::kEvaluate counts loss and
  // metrics and needs a compiled model; Mode::kPredict gives the net's own results, without views. Throws
  // ConfigError for any other mode, and if the data do not fit the net. REQUIRES: the model outlives it.
  Evaluator(Model& model, const Dataset& data, const EvaluateOptions& options = {}, Mode mode = Mode::kEvaluate);
  // Takes batches from a loader; one epoch is one pass. Ignores `options.input`. Also throws ConfigError if the
  // loader is on other devices than the model; with `virtual_shards` it must have the strategy's devices
  // repeated() for that many shards. REQUIRES: the model and the loader outlive it.
  Evaluator(Model& model, Loader& loader, const EvaluateOptions& options = {}, Mode mode = Mode::kEvaluate);
  ~Evaluator();  // waits for submitted work
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  // Runs a batch once without examples: a GPU loads a kernel on its first use. Changes no result. Waits.
  void warm_up();

  // Makes one pass over the data and waits for its end. Throws Error(kCancelled) if `stop` ended it; throws
  // ConfigError at a second pass over a data set, which was opened for one. REQUIRES: the mode is kEvaluate for
  // evaluate(), kPredict for predict().
  Evaluation evaluate();
  Predictions predict();
  // Like evaluate(), but returns the sums, or std::nullopt if `stop` ended the pass.
  std::optional<MetricSums> pass();

  // Submits the next batch; returns false at the end of the data. For a pass in pieces, with Mode::kEvaluate.
  bool step();
  // Splits step(): takes the next batch, then runs its forward pass for inspection. Not with virtual shards.
  std::optional<GlobalBatch> take();
  const ForwardPass& forward(GlobalBatch batches);
  // Waits for the batches since the last reset and returns their sums, over all workers: each makes the call. Each
  // pass() begins with a reset.
  MetricSums finish();
  // Returns the metrics of the same batches, as in EpochReport::metrics.
  std::vector<MetricValue> metrics() const;
  void reset_metrics();

 private:
  class HEADRACE_HIDDEN Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace
