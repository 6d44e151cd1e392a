// What training makes small. A loss has one or more terms; a term is a function of the model's result and a field
// of the data, the labels:
//
//   model.compile({.loss = categorical_crossentropy({.label_smoothing = 0.1F})});
//   model.compile({.loss = 0.7F * mean_squared_error() + 0.3F * mean_absolute_error()});
//
// A function of your own is a LossFunction, or for a start a host_loss().
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/kernels.h"
#include "headrace/pipeline/record.h"

namespace headrace {

// What the gradient is of, over the real examples of a step. What is reported is the mean always.
enum class Reduction { kMean, kSum };

// What losses and metrics are computed from.
struct ResultInfo {
  Shape shape;           // of one example
  std::string layer;     // "layer 'dense_1' (dense)": how messages name it
  bool softmax = false;  // the model's last layer is a softmax
};

// Which of a model's results that end in softmax a loss or metric is given.
enum class ResultForm {
  kWhole,   // the probabilities
  kLogits,  // what the softmax is applied to: its gradient and the loss's are then computed in one
  kOrder,   // of metrics: either, only the order within a row matters
};

// Memory that a call uses and that keeps nothing between calls: views without a place, one each.
struct ScratchSpec {
  std::vector<TensorView> device = {};
  std::vector<TensorView> pinned = {};  // host memory that the device copies from and to
};

// One call's world. Views have the batch's rows first; results and gradients are f32, labels as the data have
// them, a class number a row as (rows).
struct LossCall {
  Stream& stream;
  Kernels& kernels;
  const StepScalars* scalars = nullptr;  // in device memory
  TensorView result = {};
  TensorView labels = {};
  TensorView gradient = {};    // of the result; undefined in an evaluation
  MetricSums* sums = nullptr;  // in device memory
  std::vector<TensorView> device_scratch = {}, pinned_scratch = {};
};

// A term's function. Const: one object serves all replicas, each from its own stream.
class LossFunction {
 public:
  virtual ~LossFunction() = default;

  virtual std::string name() const = 0;  // "mean_squared_error"
  // ConfigError where it is not a function of such a result, or of such labels.
  virtual void check_result(const ResultInfo& result) const = 0;
  virtual void check_labels(const ResultInfo& result, const Field& labels) const = 0;
  virtual ResultForm form() const { return ResultForm::kWhole; }
  // Labels are class numbers, each below the result's last extent: one that is not is named with its record.
  virtual bool takes_class_numbers() const { return false; }
  // submit() also counts the examples whose largest result is their label's, as accuracy() does.
  virtual bool counts_correct() const { return false; }
  virtual ScratchSpec scratch(const TensorView& result, const TensorView& labels) const;
  // What its maker was given, as a JSON object, so that a record can make it again; empty for one of your own,
  // which whoever opens the record hands over.
  virtual std::string options_json() const { return {}; }

  // Submits to the stream, where it may be captured: allocates nothing and does not wait. Of the call's
  // scalars->rows real examples it adds each one's loss, in double, and their number to *sums: what a kernel does,
  // or Kernels::add_losses() with one number an example. Where a gradient is wanted it writes that of the sum of
  // losses times scalars->inverse_global_rows, 0 in the rows of padding.
  virtual void submit(const LossCall& call) const = 0;
};

// A function, what it is applied to, and what it counts.
struct LossTerm {
  std::shared_ptr<const LossFunction> function;
  std::string label_field = {};  // empty: "label"
  std::string result = {};       // the output it is of, called as its layer; empty: the first one
  float weight = 1;
};

// Values that describe; copyable. What a Loss gives is the weighted sum of its terms.
struct Loss {
  Loss() = default;
  template <std::derived_from<LossFunction> Function>
  Loss(std::shared_ptr<Function> function) {  // one of your own: .loss = std::make_shared<MyLoss>()
    terms.push_back({.function = std::move(function)});
  }

  // The same of another field of the data, or of a layer's result.
  Loss against(const std::string& label_field) const;
  Loss of(const std::string& layer) const;

  std::vector<LossTerm> terms;
  Reduction reduction = Reduction::kMean;
};

// ConfigError for a weight that is not a positive number, and for sums of different reductions.
Loss operator*(float weight, const Loss& loss);
Loss operator+(const Loss& a, const Loss& b);

struct SparseCrossEntropyOptions {
  // True: the model's result are logits. False: it ends in softmax (which is then fused with the loss: the
  // same value, without the loss of precision).
  bool from_logits = true;
  float label_smoothing = 0;  // this share of the target is spread over all classes
  Reduction reduction = Reduction::kMean;
};
using CrossEntropyOptions = SparseCrossEntropyOptions;

// Labels are class numbers, i64, one an example.
Loss sparse_categorical_crossentropy(const SparseCrossEntropyOptions& options = {});
// Labels are f32, one for each class: one-hot, smoothed, or mixed by mixup() and cutmix().
Loss categorical_crossentropy(const CrossEntropyOptions& options = {});

struct BinaryCrossEntropyOptions {
  bool from_logits = true;  // false: the results are probabilities, taken as within [1e-7, 1 - 1e-7]
  // As Keras defines it, for the two classes: a label y counts as (1 - label_smoothing) y + label_smoothing / 2.
  float label_smoothing = 0;
  Reduction reduction = Reduction::kMean;
};

// An example's loss is the mean over its elements. Labels have the result's shape, or are one number where the
// result is one: f32, or whole numbers.
Loss binary_crossentropy(const BinaryCrossEntropyOptions& options = {});
Loss mean_squared_error(Reduction reduction = Reduction::kMean);
Loss mean_absolute_error(Reduction reduction = Reduction::kMean);

// One real example of a loss that is computed on the host.
struct HostExample {
  std::span<const float> result;
  std::span<const float> labels = {};  // of an f32 field
  std::int64_t class_number = 0;       // of an i64 field
  std::span<float> gradient = {};  // to be written: the loss's, by each element of the result; empty: not wanted
};

// A loss of your own as a function of one example. On every device it runs on the host, to which results are
// copied and from which gradients come back: to try an idea, not to train at full speed. The streams' threads call
// it, several at once. An exception ends the run.
Loss host_loss(const std::string& name, std::function<double(const HostExample&)> function);

// Of a training loop of your own: the sum of one replica's losses, one an example, divided by the examples of the
// global batch. ConfigError for a single number: a mean that was taken over a part of the batch weighs its
// examples as that part's size has it.
double compute_average_loss(std::span<const float> losses, std::int64_t global_examples);
double compute_average_loss(const TensorView& losses, std::int64_t global_examples);  // that the host can read
[[noreturn]] double compute_average_loss(double loss, std::int64_t global_examples);

}  // namespace headrace
