#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "headrace/devices/base/error.h"
#include "headrace/train/layers.h"
#include "headrace/train/metrics.h"
#include "headrace/train/objectives/losses/result_checks.h"

namespace headrace {

MetricValue averaged(Average average, const std::vector<double>& values, double micro,
                     const std::vector<double>& examples) {
  if (values.size() == 1) return {.values = values};
  const auto classes = static_cast<std::int64_t>(values.size());
  double sum = 0, weight = 0;
  for (std::size_t c = 0; c < values.size(); ++c) {
    const double mine = average == Average::kWeighted ? examples[c] : 1.0;
    sum += mine * values[c];
    weight += mine;
  }
  switch (average) {
    case Average::kNone: return {.values = values, .shape = {classes}};
    case Average::kMicro: return {.values = {micro}};
    case Average::kMacro:
    case Average::kWeighted: break;
  }
  return {.values = {weight > 0 ? sum / weight : 0.0}};
}

ScratchSpec score_scratch(const TensorView& result) { return {.device = {result}}; }

void count_scores(const MetricCall& call, ScoreBuckets buckets) {
  TensorView scores = as_matrix(call.result);
  const bool categorical = call.task.task == Task::kCategorical;
  buckets.sigmoid = call.task.from_logits && !categorical;
  if (call.task.from_logits && categorical) {
    const TensorView probabilities = as_matrix(call.device_scratch.front());
    call.kernels.softmax(call.stream, {scores, probabilities});
    scores = probabilities;
  }
  const TensorView counts{call.table.data, {scores.shape[1], buckets.count, 2}, DType::kI64};
  call.kernels.count_scores(call.stream, {scores, call.labels, counts, buckets, call.scalars});
}

// Precision, recall and their harmonic mean, and the confusion matrix, from counts of predictions.

namespace {

// The predictions of a class that are right, all of them, and the examples of the class.
struct ClassCounts {
  double hits = 0, predicted = 0, examples = 0;

  ClassCounts& operator+=(const ClassCounts& more) {
    hits += more.hits;
    predicted += more.predicted;
    examples += more.examples;
    return *this;
  }
};

double precision_of(const ClassCounts& of) { return ratio(of.hits, of.predicted); }
double recall_of(const ClassCounts& of) { return ratio(of.hits, of.examples); }
double f1_of(const ClassCounts& of) { return ratio(2 * of.hits, of.predicted + of.examples); }

class ClassScore final : public MetricFunction {
 public:
  using Score = double (*)(const ClassCounts&);

  ClassScore(std::string name, Score score, const ClassScoreOptions& options)
      : name_(std::move(name)), score_(score), options_(options) {}

  std::string name() const override { return name_; }
  void check_result(const ResultInfo& result) const override { check_class_scores(name_, result); }
  void check_labels(const ResultInfo& result, const Field& labels) const override {
    check_class_labels(name_, result, labels);
  }
  Better better() const override { return Better::kHigher; }
  bool is_number(const ResultInfo& result) const override {
    return options_.average != Average::kNone || result.shape.back() == 1;
  }
  ResultForm form() const override { return options_.threshold ? ResultForm::kWhole : ResultForm::kOrder; }
  ScratchSpec scratch(const TensorView& result, const TensorView&) const override {
    return options_.threshold ? score_scratch(result) : ScratchSpec{};
  }
  std::optional<Shape> table(const ResultInfo& result) const override {
    const std::int64_t classes = result.shape.back();
    return by_largest(*result.task) ? Shape{classes, classes} : Shape{classes, 2, 2};
  }
  std::optional<Attributes> attributes() const override { return attributes_of(options_); }

  void submit(const MetricCall& call) const override {
    if (by_largest(call.task)) {
      return call.kernels.count_confusions(call.stream, {call.result, call.labels, call.table, call.scalars});
    }
    count_scores(call, {.count = 2, .threshold = options_.threshold.value_or(0.5F)});
  }
  MetricValue value(const MetricTotals& totals) const override {
    const std::vector<ClassCounts> classes =
        by_largest(*totals.result.task) ? counts_of(totals.table) : counts_of_scores(totals.table);
    std::vector<double> values, examples;
    for (const ClassCounts& each : classes) {
      values.push_back(score_(each));
      examples.push_back(each.examples);
    }
    return averaged(options_.average, values,
                    score_(std::accumulate(classes.begin(), classes.end(), ClassCounts{},
                                           [](ClassCounts sum, const ClassCounts& each) { return sum += each; })),
                    examples);
  }

 private:
  // Returns whether the prediction is the class of the largest result.
  bool by_largest(const ResultTask& of) const { return !options_.threshold && of.task == Task::kCategorical; }

  static std::vector<ClassCounts> counts_of(std::span<const std::int64_t> table) {
    const auto classes = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(table.size()))));
    std::vector<ClassCounts> counts(classes);
    for (std::size_t label = 0; label < classes; ++label) {
      for (std::size_t predicted = 0; predicted < classes; ++predicted) {
        const auto count = static_cast<double>(table[label * classes + predicted]);
        counts[label].examples += count;
        counts[predicted].predicted += count;
        if (label == predicted) counts[label].hits += count;
      }
    }
    return counts;
  }

  // By class: {{below, not of the class}, {below, of it}, {above, not}, {above, of it}}.
  static std::vector<ClassCounts> counts_of_scores(std::span<const std::int64_t> table) {
    std::vector<ClassCounts> counts;
    for (std::size_t at = 0; at < table.size(); at += 4) {
      const auto hits = static_cast<double>(table[at + 3]);
      counts.push_back({.hits = hits,
                        .predicted = static_cast<double>(table[at + 2]) + hits,
                        .examples = static_cast<double>(table[at + 1]) + hits});
    }
    return counts;
  }

  std::string name_;
  Score score_;
  ClassScoreOptions options_;
};

Metric class_score(const std::string& name, ClassScore::Score score, const ClassScoreOptions& options) {
  const float threshold = options.threshold.value_or(0.5F);
  if (!(threshold >= 0 && threshold <= 1)) {
    throw ConfigError(fmt::format("{}: the threshold is {}, it must be a probability", name, threshold));
  }
  return std::make_shared<ClassScore>(name, score, options);
}

class ConfusionMatrix final : public MetricFunction {
 public:
  std::string name() const override { return "confusion_matrix"; }
  void check_result(const ResultInfo& result) const override {
    check_classes(name(), result);
    check_task(name(), result, {Task::kCategorical, Task::kBinary});
  }
  void check_labels(const ResultInfo& result, const Field& labels) const override {
    check_class_labels(name(), result, labels);
  }
  ResultForm form() const override { return ResultForm::kOrder; }
  bool is_number(const ResultInfo&) const override { return false; }
  std::optional<Shape> table(const ResultInfo& result) const override {
    const std::int64_t classes = result.task->task == Task::kBinary ? 2 : result.shape.back();
    return Shape{classes, classes};
  }
  std::optional<Attributes> attributes() const override { return Attributes(); }

  void submit(const MetricCall& call) const override {
    if (call.task.task == Task::kBinary) return count_scores(call, {.count = 2});
    call.kernels.count_confusions(call.stream, {call.result, call.labels, call.table, call.scalars});
  }
  MetricValue value(const MetricTotals& totals) const override {
    std::vector<double> counts(totals.table.begin(), totals.table.end());
    // Counted by prediction, then by label.
    if (totals.result.task->task == Task::kBinary) std::swap(counts.at(1), counts.at(2));
    const Shape shape = *table(totals.result);
    return {.values = std::move(counts), .shape = shape};
  }
};

}  // namespace

Metric confusion_matrix() { return std::make_shared<ConfusionMatrix>(); }
Metric precision(const ClassScoreOptions& options) { return class_score("precision", precision_of, options); }
Metric recall(const ClassScoreOptions& options) { return class_score("recall", recall_of, options); }
Metric f1_score(const ClassScoreOptions& options) { return class_score("f1_score", f1_of, options); }

}  // namespace headrace
