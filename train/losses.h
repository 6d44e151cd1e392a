// Losses: what training minimizes. A loss has one or more terms; a term is a function of the model's result and of
// a field of the data, the labels:
//
//   model.compile({.loss = categorical_crossentropy({.label_smoothing = 0.1F})});
//   model.compile({.loss = 0.7F * mean_squared_error() + 0.3F * mean_absolute_error()});
//
// A custom function is a LossFunction or, for quick experiments, a host_loss() or a host_batch_loss().
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/kernels.h"
#include "headrace/pipeline/record.h"
#include "headrace/train/layers.h"

namespace HEADRACE_API headrace {

// The combination of a step's losses in its gradient. The loss that is reported is always their mean,
// so that it can be compared whatever the size of a batch.
enum class Reduction { kMean, kSum };
constexpr std::array<const char*, 2> choice_names(Reduction) { return {"mean", "sum"}; }

// The task that a result solves.
enum class Task {
  kRegression,   // numbers as they are
  kBinary,       // one number: whether the example is of class 1 rather than 0
  kMultiLabel,   // a number for each label: whether the example has it, each for itself
  kCategorical,  // a number for each class: of which one the example is
};
constexpr std::array<const char*, 4> choice_names(Task) {
  return {"regression", "binary", "multi_label", "categorical"};
}
std::string to_text(Task task);
// Throws ConfigError listing the words.
Task task_named(const std::string& word);

struct ResultTask {
  Task task = Task::kRegression;
  bool from_logits = false;  // the results are logits; false: probabilities or, of a regression, the numbers

  bool operator==(const ResultTask&) const = default;
};
// Returns e.g. "binary, from logits".
std::string to_text(const ResultTask& task);

// The kind of a result's values, as far as its layers tell.
enum class ResultValues {
  kUnknown,        // a custom layer's, for one
  kNumbers,        // any: the last layer that computes is one such as dense()
  kProbabilities,  // a sigmoid's or softmax's, also after layers that only move, choose or average them
};

// Describes the result from which losses and metrics are computed.
struct ResultInfo {
  Shape shape;           // of one example
  std::string layer;     // layer name as in messages: "layer 'dense_1' (dense)"
  bool softmax = false;  // the model's last layer is a softmax
  ResultValues values = ResultValues::kUnknown;
  // For metrics: std::nullopt if neither the loss nor the last layer says it, or if two terms say different
  // things.
  std::optional<ResultTask> task = std::nullopt;
  std::string why = {};  // for messages: the losses of the result, "of mean_squared_error"
};

// The form in which a loss or metric receives a result that ends in softmax.
enum class ResultForm {
  kWhole,   // the probabilities
  kLogits,  // the softmax's input: its gradient and the loss's are then computed together
  kOrder,   // for metrics: either one, as only the order within a row matters
};

// Memory that a call uses and that keeps nothing between calls: one view without data for each buffer.
struct ScratchSpec {
  std::vector<TensorView> device = {};
  std::vector<TensorView> pinned = {};  // host memory that the device copies from and to
};

// The arguments of one call. The first extent of views is the batch's rows. Results and gradients are f32, labels
// have the data's type; one class number per row has shape (rows).
struct LossCall {
  Stream& stream;
  Kernels& kernels;
  const StepScalars* scalars = nullptr;  // in device memory
  TensorView result = {};
  TensorView labels = {};
  TensorView gradient = {};    // of the result; undefined in an evaluation
  TensorView weights = {};     // f32 (rows): each row's loss and gradient are multiplied by its own; undefined: 1
  MetricSums* sums = nullptr;  // in device memory
  std::vector<TensorView> device_scratch = {}, pinned_scratch = {};
};

// The function of a term. Const: one object serves all replicas, each from its own stream.
class LossFunction {
 public:
  virtual ~LossFunction() = default;

  virtual std::string name() const = 0;  // "mean_squared_error"
  // Throws ConfigError if the function cannot be applied to such a result, or to such labels.
  virtual void check_result(const ResultInfo& result) const = 0;
  virtual void check_labels(const ResultInfo& result, const Field& labels) const = 0;
  // Returns what results are to this loss. std::nullopt: it does not say, as Loss::for_task() may.
  virtual std::optional<ResultTask> task(const ResultInfo&) const { return std::nullopt; }
  virtual ResultForm form() const { return ResultForm::kWhole; }
  // Returns whether labels are class numbers below the result's last extent; an error names a bad one's record.
  virtual bool takes_class_numbers() const { return false; }
  // Returns whether submit() also counts the examples whose largest result is their label's, as accuracy() does.
  virtual bool counts_correct() const { return false; }
  // Returns whether submit() weighs rows by LossCall::weights. If not, a loss with weights is refused.
  virtual bool takes_weights() const { return false; }
  virtual ScratchSpec scratch(const TensorView& result, const TensorView& labels) const;
  // Returns the options of its kind, one of loss_kinds(), from which it can be recreated. std::nullopt for a
  // custom loss, which callers who open the file must supply.
  virtual std::optional<Attributes> attributes() const { return std::nullopt; }

  // Submits to the stream, possibly during capture: must not allocate or wait. Adds the loss, in double, and the
  // count of the first scalars->rows examples, the real ones, to *sums, in a kernel or by Kernels::add_losses()
  // with one number per example. If a gradient is wanted, writes that of the sum of losses times
  // scalars->inverse_global_rows, 0 in padding rows.
  virtual void submit(const LossCall& call) const = 0;
};

// A function, its inputs and its weight.
struct LossTerm {
  std::shared_ptr<const LossFunction> function;
  std::string label_field = {};  // empty: "label"
  std::string result = {};       // the output it applies to, named after its layer; empty: the first one
  float weight = 1;
  std::string weight_field = {};          // see Loss::weighted_by(); empty: none
  std::vector<float> class_weights = {};  // see Loss::class_weighted(); empty: none
  // See Loss::for_task().
  std::optional<Task> task = std::nullopt;
  std::optional<bool> from_logits = std::nullopt;
};

// A copyable description. The loss's value is the weighted sum of its terms.
struct Loss {
  Loss() = default;
  template <std::derived_from<LossFunction> Function>
  Loss(std::shared_ptr<Function> function) {  // custom: .loss = std::make_shared<MyLoss>()
    terms.push_back({.function = std::move(function)});
  }

  // Returns a copy for another label field, or for a layer's result.
  Loss against(const std::string& label_field) const;
  Loss of(const std::string& layer) const;
  // Returns a copy that multiplies each example's loss by its weight: a field of the data, one f32, in training
  // and in evaluations. As in Keras the mean is the sum of weight * loss divided by the number of examples, not by
  // the sum of the weights.
  Loss weighted_by(const std::string& field) const;
  // Returns a copy that multiplies each example's loss by the weight of its class, in training only: one weight
  // for each class, or two for a net with one result. The class of labels that are f32 is the largest one's or, of
  // one number, that number rounded. FitOptions::class_weight does so for a single fit.
  Loss class_weighted(const std::vector<float>& weights) const;
  // Returns a copy that says what the results are, for metrics and predictions: of a custom loss, or where several
  // readings fit, such as the mean squared error of a sigmoid's result, which is a regression unless said
  // otherwise. `from_logits` must be given where neither the loss nor the last layer says it. compile() throws
  // ConfigError if the net or the loss contradicts.
  Loss for_task(Task task, std::optional<bool> from_logits = std::nullopt) const;

  std::vector<LossTerm> terms;
  Reduction reduction = Reduction::kMean;
};

// Throws ConfigError if a weight is not a positive number, or if the summed losses have different reductions.
Loss operator*(float weight, const Loss& loss);
Loss operator+(const Loss& a, const Loss& b);

// All losses below have a reduction; each_field() visits the other options of their kind.

struct SparseCrossEntropyOptions {
  bool from_logits = true;
  float label_smoothing = 0;
  Reduction reduction = Reduction::kMean;

  void each_field(OptionVisitor& visit) {
    visit("from_logits", from_logits,
          "Whether the model's results are logits. False: it ends in softmax, which is fused with the loss: the "
          "same "
          "value, without the loss of precision.");
    visit("label_smoothing", label_smoothing, "This share of the target is spread over all classes.");
  }
};
using CrossEntropyOptions = SparseCrossEntropyOptions;

// Takes labels that are class numbers, i64, one per example.
Loss sparse_categorical_crossentropy(const SparseCrossEntropyOptions& options = {});
// Takes f32 labels, one for each class: one-hot, smoothed, or mixed by mixup() and cutmix().
Loss categorical_crossentropy(const CrossEntropyOptions& options = {});

struct BinaryCrossEntropyOptions {
  bool from_logits = true;
  float label_smoothing = 0;
  Reduction reduction = Reduction::kMean;

  void each_field(OptionVisitor& visit) {
    visit(
        "from_logits", from_logits,
        "Whether the model's results are logits. False: they are probabilities, clamped to [1e-7, 1 - 1e-7], of a "
        "model that ends in a sigmoid.");
    visit("label_smoothing", label_smoothing,
          "As in Keras, for two classes: a label y counts as (1 - label_smoothing) y + label_smoothing / 2.");
  }
};

struct ElementLossOptions {
  Reduction reduction = Reduction::kMean;

  void each_field(OptionVisitor& /*visit*/) const noexcept {}
};

// Averages an example's loss over its elements. Labels have the result's shape, or are one number if the result is
// one: f32, or whole numbers.
Loss binary_crossentropy(const BinaryCrossEntropyOptions& options = {});
Loss mean_squared_error(const ElementLossOptions& options = {});
Loss mean_absolute_error(const ElementLossOptions& options = {});
// Squared below an error of 1, linear above: error^2 / 2 and |error| - 1/2.
Loss huber(const ElementLossOptions& options = {});
// The mean of max(0, 1 - s x): labels above 0 stand for s = 1, others for s = -1.
Loss hinge(const ElementLossOptions& options = {});
// The sum over an example's elements of t log(t / x), labels and results being probabilities.
Loss kl_divergence(const ElementLossOptions& options = {});
// Minus the cosine of the angle between a result and its label, -1 for one direction, both along the last axis;
// the mean over other axes, as Keras's CosineSimilarity. Labels are f32, of the result's shape.
Loss cosine_similarity(const ElementLossOptions& options = {});

// A built-in kind of loss.
struct LossKind {
  std::string name;
  std::string doc;
  // Makes a loss from the options that the visitor sets, without a reduction.
  std::function<Loss(OptionVisitor& visit)> make;
};
const std::vector<LossKind>& loss_kinds();

// One real example for a loss that is computed on the host.
struct HostExample {
  std::span<const float> result;
  std::span<const float> labels = {};  // of an f32 field
  std::int64_t class_number = 0;       // of an i64 field
  std::span<float> gradient = {};      // output: the loss's, by element of the result; empty: not wanted
};

// Returns a custom loss from a function of one example. On every device it runs on the host; results are copied
// there and gradients back. Meant for experiments, not for full speed. The streams' threads call it, several at
// once. An exception ends the run.
Loss host_loss(const std::string& name, std::function<double(const HostExample&)> function);

// The real examples of one replica's batch, for a loss or a metric that is computed on the host. There may be
// none.
struct HostBatch {
  TensorView result = {};   // f32, one row per example
  TensorView labels = {};   // of the data's type; class numbers that are i64 have the shape (rows)
  TensorView weights = {};  // f32 (rows), for a weighted metric; undefined: not weighted
  // Output of a loss: that of each example, and its gradient by element of the result, 0 at first. Undefined: not
  // wanted.
  std::span<float> losses = {};
  TensorView gradient = {};
};

// Returns a custom loss from a function of one replica's examples. Like host_loss(), but called once a batch, and
// for labels of any type.
Loss host_batch_loss(const std::string& name, std::function<void(const HostBatch&)> function);

// Returns, for a custom training loop, the sum of one replica's losses, one per example, divided by the examples
// of the global batch. The overload for a single number throws ConfigError: a mean over part of the batch would
// weigh its examples by the size of that part.
double compute_average_loss(std::span<const float> losses, std::int64_t global_examples);
double compute_average_loss(const TensorView& losses, std::int64_t global_examples);  // readable by the host
[[noreturn]] double compute_average_loss(double loss, std::int64_t global_examples);

}  // namespace headrace
