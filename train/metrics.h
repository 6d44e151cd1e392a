// Metrics, counted along with the loss: exact sums over examples and replicas, never a mean of means.
//
//   model.compile({.loss = categorical_crossentropy(), .metrics = {accuracy(), top_k(5), mean_absolute_error()}});
#pragma once

#include <concepts>
#include <cstdint>
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

// Counts over all examples and replicas.
struct MetricTotals {
  MetricSums sums;
  std::span<const std::int64_t> table = {};
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
  MetricSums* sums = nullptr;  // in device memory, like the table
  TensorView table = {};       // i64
  std::vector<TensorView> device_scratch = {}, pinned_scratch = {};
};

// Counts a metric and computes its value. Const: one object serves all replicas.
class MetricFunction {
 public:
  virtual ~MetricFunction() = default;

  virtual std::string name() const = 0;  // in the history, in output lines and in JSON
  // See LossFunction.
  virtual void check_result(const ResultInfo& result) const = 0;
  virtual void check_labels(const ResultInfo& result, const Field& labels) const = 0;
  virtual ResultForm form() const { return ResultForm::kWhole; }
  virtual ScratchSpec scratch(const TensorView& result, const TensorView& labels) const;
  // Returns the extents of counts besides the sums. They stay on the device until an epoch or an evaluation ends.
  virtual std::optional<Shape> table(const ResultInfo&) const { return std::nullopt; }
  // Returns whether it counts the same as a loss with counts_correct(): nothing is submitted if there is one.
  virtual bool is_accuracy() const { return false; }
  // See LossFunction.
  virtual std::string options_json() const { return {}; }

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

  std::string label_field = {};  // empty: that of the first term on the same result, or else of the first term
  std::string result = {};       // the output it applies to; empty: the first one
};

// Counts the share of examples whose largest result is their label's. Labels are class numbers, or f32 for each
// class: the label is then the largest one. The first of equal values counts.
Metric accuracy();
// Counts the share of examples whose label is among the k largest results: "top_5".
Metric top_k(int k);
// Counts how often the model predicted each class (column) for examples of each class (row): "confusion_matrix", a
// square table with one row and one column per class.
Metric confusion_matrix();

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

// Returns the value of this name, or null if there is none.
const MetricValue* find_metric(const std::vector<MetricValue>& values, const std::string& name);

}  // namespace headrace
