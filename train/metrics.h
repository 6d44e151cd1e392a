// What is counted beside the loss: exact sums over examples and replicas, never a mean of means.
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

// What was counted over examples and replicas.
struct MetricTotals {
  MetricSums sums;
  std::span<const std::int64_t> table = {};
};

// A metric's value: one number, or with a shape as many as that has elements.
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
  MetricSums* sums = nullptr;  // in device memory, as the table
  TensorView table = {};       // i64
  std::vector<TensorView> device_scratch = {}, pinned_scratch = {};
};

// What a metric counts and makes of it. Const: one object serves all replicas.
class MetricFunction {
 public:
  virtual ~MetricFunction() = default;

  virtual std::string name() const = 0;  // in the history, in lines and in JSON
  // As of a LossFunction.
  virtual void check_result(const ResultInfo& result) const = 0;
  virtual void check_labels(const ResultInfo& result, const Field& labels) const = 0;
  virtual ResultForm form() const { return ResultForm::kWhole; }
  virtual ScratchSpec scratch(const TensorView& result, const TensorView& labels) const;
  // The extents of counts beside the sums. They stay on the device until an epoch or an evaluation ends.
  virtual std::optional<Shape> table(const ResultInfo&) const { return std::nullopt; }
  // The same as a loss counts where that counts_correct(): nothing is submitted then.
  virtual bool is_accuracy() const { return false; }
  // As a LossFunction's.
  virtual std::string options_json() const { return {}; }

  // Submits to the stream, where it may be captured, what adds the real rows to the sums and the table.
  virtual void submit(const MetricCall& call) const = 0;
  // Of all replicas' sums; those of no examples are 0.
  virtual MetricValue value(const MetricTotals& totals) const = 0;
};

// Values that describe; copyable.
struct Metric {
  template <std::derived_from<MetricFunction> Function>
  Metric(std::shared_ptr<Function> of) : function(std::move(of)) {}  // one of your own
  // The loss's mean. ConfigError for a sum of several.
  Metric(const Loss& loss);

  std::shared_ptr<const MetricFunction> function;
  // The same of a layer's result: with several outputs its name is then "<layer>/<name>".
  Metric of(const std::string& layer) const;

  std::string label_field = {};  // empty: that of the first term on the same result, or else of the first term
  std::string result = {};       // the output it is of; empty: the first one
};

// The share of examples whose largest result is their label's. Labels are class numbers, or f32 for each class:
// the largest is then the label. Of equal ones the first counts.
Metric accuracy();
// Whose label is among the k largest: "top_5".
Metric top_k(int k);
// How often the model said one class (the column) of examples of another (the row): "confusion_matrix", a table of
// as many rows and columns as classes.
Metric confusion_matrix();

inline MetricSums& operator+=(MetricSums& sums, const MetricSums& more) {
  sums.loss += more.loss;
  sums.correct += more.correct;
  sums.examples += more.examples;
  return sums;
}

// Per example; 0 where there were none.
inline double mean_loss(const MetricSums& sums) {
  return sums.examples > 0 ? sums.loss / static_cast<double>(sums.examples) : 0.0;
}
inline double mean_accuracy(const MetricSums& sums) {
  return sums.examples > 0 ? static_cast<double>(sums.correct) / static_cast<double>(sums.examples) : 0.0;
}

// The one of this name; null where there is none.
const MetricValue* find_metric(const std::vector<MetricValue>& values, const std::string& name);

}  // namespace headrace
