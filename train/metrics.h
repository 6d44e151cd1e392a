// Metrics, counted along with the loss: exact sums over examples and replicas, never a mean of means.
//
//   model.compile({.loss = categorical_crossentropy(), .metrics = {accuracy(), top_k(5), mean_absolute_error()}});
//
// A custom metric is a MetricFunction or, for quick experiments, a host_metric().
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
#include "headrace/train/losses.h"

namespace HEADRACE_API headrace {

// Says which of two values is better. kAuto: what the value is of says it; for a metric: it does not.
enum class Better { kAuto, kLower, kHigher };
constexpr std::array<const char*, 3> choice_names(Better) { return {"auto", "min", "max"}; }

// Counts over all examples and replicas.
struct MetricTotals {
  const ResultInfo& result;
  MetricSums sums;
  std::span<const std::int64_t> table = {};
  std::span<const double> real_table = {};      // in its place for a metric with real_table()
  std::optional<double> weight = std::nullopt;  // the examples', if the metric is weighted

  // Returns what the examples add up to, weighted or not, per example or per weight; 0 if there are none.
  double mean(double unweighted) const;
};

// A metric's value: one number or, with a shape, as many as the shape has elements.
struct MetricValue {
  std::string name = {};
  std::vector<double> values = {};
  Shape shape = {};

  bool is_number() const noexcept { return shape.rank() == 0; }
  double number() const { return values.at(0); }
};

struct MetricCall {
  Stream& stream;
  Kernels& kernels;
  const StepScalars* scalars = nullptr;  // in device memory
  TensorView result = {};
  TensorView labels = {};
  TensorView weights = {};     // f32 (rows); undefined: not weighted
  ResultTask task = {};        // of the result; of ResultForm::kOrder a softmax may be left out of it
  MetricSums* sums = nullptr;  // in device memory, like the table
  TensorView table = {};       // i64
  std::vector<TensorView> device_scratch = {}, pinned_scratch = {};
};

// Counts a metric and computes its value. Const: one object serves all replicas.
class MetricFunction {
 public:
  virtual ~MetricFunction() = default;

  virtual std::string name() const = 0;  // in the history and in output lines
  // Returns its kind, one of metric_kinds() or loss_kinds(), or the name of a custom metric.
  virtual std::string kind() const { return name(); }
  // See LossFunction.
  virtual void check_result(const ResultInfo& result) const = 0;
  virtual void check_labels(const ResultInfo& result, const Field& labels) const = 0;
  virtual ResultForm form() const { return ResultForm::kWhole; }
  // Returns which values are better. What chooses by a metric that does not say it must be told.
  virtual Better better() const { return Better::kAuto; }
  // Returns whether value() is one number.
  virtual bool is_number(const ResultInfo&) const { return true; }
  virtual ScratchSpec scratch(const TensorView& result, const TensorView& labels) const;
  // Returns the extents of counts besides the sums. They stay on the device until an epoch or an evaluation ends.
  virtual std::optional<Shape> table(const ResultInfo&) const { return std::nullopt; }
  // Returns whether the table's elements are doubles in place of i64; shards are added in the order of the world.
  virtual bool real_table() const { return false; }
  // Returns whether it counts the same as a loss with counts_correct(): nothing is submitted if there is one.
  virtual bool is_accuracy() const { return false; }
  // Returns whether it can be weighted: with MetricCall::weights, submit() adds weight * value to
  // MetricSums::loss.
  virtual bool takes_weights() const { return false; }
  // See LossFunction.
  virtual std::optional<Attributes> attributes() const { return std::nullopt; }

  // Submits to the stream, possibly during capture, work that adds the real rows to the sums and the table.
  virtual void submit(const MetricCall& call) const = 0;
  // Returns the value from all replicas' sums; sums over no examples are 0.
  virtual MetricValue value(const MetricTotals& totals) const = 0;
};

// A copyable description.
struct Metric {
  template <std::derived_from<MetricFunction> Function>
  Metric(std::shared_ptr<Function> of) : function(std::move(of)) {}  // custom
  // Reports the loss's mean. Throws ConfigError for a sum of several losses.
  Metric(const Loss& loss);

  std::shared_ptr<const MetricFunction> function;
  // Returns a copy for a layer's result. With several outputs the copy's name is "<layer>/<name>".
  Metric of(const std::string& layer) const;

  // Returns a copy in which each example counts by its weight in the loss of the same result: the sum of weight *
  // value divided by that of the weights. Its name is "weighted_<name>". Throws ConfigError if it is a table's.
  Metric weighted() const;

  bool is_weighted = false;
  std::string label_field = {};  // empty: that of the first term on the same result, or else of the first term
  std::string result = {};       // the output it applies to; empty: the first one
};

// These metrics depend on the result's task (Model::tasks()), which the loss and the last layer tell;
// compile() refuses a metric that does not fit it, or one of a result whose task is unknown.

// Counts the share of examples that are predicted right. Categorical: the largest result is the label's; labels
// are class numbers, or f32 for each class: the label is then the largest one, and the first of equal values
// counts. Binary: the probability is above 0.5 where the label is at least 0.5, and not elsewhere. Multi-label:
// the share of all labels of all examples that are right by that rule.
Metric accuracy();
// Counts the same as "binary_accuracy", of binary and multi-label results alone.
Metric binary_accuracy();
struct TopKOptions {
  static constexpr int kRequired = 1;

  int k = 5;

  void each_field(OptionVisitor& visit) { visit("k", k, "How many of the largest results are looked at."); }
};
// Counts the share of examples whose label is among the k largest results: "top_5". Categorical.
Metric top_k(int k);
// Counts how often the model predicted each class (column) for examples of each class (row): "confusion_matrix", a
// square table with one row and one column per class. Categorical, or binary: two classes, by 0.5.
Metric confusion_matrix();

// The average of the classes' values.
enum class Average {
  kMacro,     // their mean
  kMicro,     // the value of the counts of all classes together
  kWeighted,  // their mean, each weighted by the class's examples
  kNone,      // one value for each class
};
constexpr std::array<const char*, 4> choice_names(Average) { return {"macro", "micro", "weighted", "none"}; }

// Options of precision(), recall() and f1_score(). An average is that of scikit-learn; 0 / 0 is 0.
struct ClassScoreOptions {
  Average average = Average::kMacro;
  std::optional<float> threshold = std::nullopt;

  void each_field(OptionVisitor& visit) {
    visit("average", average,
          "\"macro\": the mean of the classes' values; \"micro\": the value of all counts together; \"weighted\": "
          "the "
          "mean weighted by the classes' examples; \"none\": one value for each class.");
    float number = threshold.value_or(kNoThreshold);
    visit("threshold", number,
          "Every class whose probability is above it is predicted. -1: of categorical results the class of the "
          "largest, of others every label whose probability is above 0.5.");
    threshold = number == kNoThreshold ? std::nullopt : std::optional(number);
  }

  static constexpr float kNoThreshold = -1;
};

// Count exactly how many of the predictions of a class are right (precision), how many of its examples are found
// (recall), and the harmonic mean of both. Labels are class numbers, or numbers of the result's shape that are at
// least 0.5 for an example of the class. With one result the class is that of label 1, and there is nothing to
// average. Probabilities of logits are their softmax, if categorical, or else each one's sigmoid.
Metric precision(const ClassScoreOptions& options = {});
Metric recall(const ClassScoreOptions& options = {});
Metric f1_score(const ClassScoreOptions& options = {});

enum class AucCurve { kRoc, kPrecisionRecall };
constexpr std::array<const char*, 2> choice_names(AucCurve) { return {"roc", "pr"}; }

struct AucOptions {
  AucCurve curve = AucCurve::kRoc;
  int thresholds = 200;
  Average average = Average::kMacro;

  void each_field(OptionVisitor& visit) {
    visit("curve", curve, "\"roc\", or \"pr\" for precision and recall.");
    visit("thresholds", thresholds,
          "The curve's points are those of this many thresholds at equal distances in [0, 1], as in Keras: the "
          "counts, and so the value, are exact for them whatever the replicas.");
    visit("average", average, "Of the classes' values, each against the rest: as for precision().");
  }
};
// Computes the area under the curve, by trapezoids or, of precision and recall, by Davis and Goadrich's
// interpolation: "auc", "pr_auc". Labels and results as for precision().
Metric auc(const AucOptions& options = {});

// A built-in kind of metric. Losses are metrics, too: loss_kinds().
struct MetricKind {
  std::string name;
  std::string doc;
  std::function<Metric(OptionVisitor& visit)> make;
  int required = 0;  // how many options, the first ones, have no default
};
const std::vector<MetricKind>& metric_kinds();

// A metric that is computed on the host from sums over all examples.
struct HostMetricOptions {
  std::string name = {};  // see MetricFunction::name()
  int sums = 1;           // how many numbers are summed
  // Adds a batch's examples to the sums. The streams' threads call it, several at once, each with sums of its own.
  std::function<void(const HostBatch&, std::span<double> sums)> add = {};
  // Returns the value from the sums of all replicas; they are 0 without examples. Set a single value or a shape.
  std::function<MetricValue(std::span<const double> sums)> value = {};
  bool takes_weights = false;  // see MetricFunction::takes_weights(): `add` uses HostBatch::weights
  Better better = Better::kAuto;
};
// Returns a custom metric from two functions; like host_loss() it works on every device. Sums of whole numbers are
// exact whatever the replicas. Its value is known when an epoch or an evaluation ends. An exception ends the run.
Metric host_metric(HostMetricOptions options);

inline MetricSums& operator+=(MetricSums& sums, const MetricSums& more) {
  sums.loss += more.loss;
  sums.correct += more.correct;
  sums.examples += more.examples;
  return sums;
}

// Returns the mean per example; 0 if there are none.
inline double mean_loss(const MetricSums& sums) {
  return sums.examples > 0 ? sums.loss / static_cast<double>(sums.examples) : 0.0;
}
inline double mean_accuracy(const MetricSums& sums) {
  return sums.examples > 0 ? static_cast<double>(sums.correct) / static_cast<double>(sums.examples) : 0.0;
}

// Returns the value called "accuracy" or, if there is none, mean_accuracy().
double reported_accuracy(const MetricSums& sums, const std::vector<MetricValue>& values);

// Returns the value of this name, or null if there is none.
const MetricValue* find_metric(const std::vector<MetricValue>& values, const std::string& name);

}  // namespace headrace
