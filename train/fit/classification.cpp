#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/inspect.h"
#include "headrace/pipeline/operations.h"
#include "headrace/pipeline/source.h"
#include "headrace/train/evaluator.h"

namespace headrace {
namespace {

constexpr std::int64_t kMaxClasses = 10'000;  // the matrix has the square

std::int64_t classes_of(const Predictions& predictions) {
  const Shape& shape = predictions.shape;
  const auto& task = predictions.task;
  if (task && task->task == Task::kBinary) return 2;
  if ((!task || task->task == Task::kCategorical) && shape.rank() == 2 && shape[1] >= 2 &&
      shape[1] <= kMaxClasses) {
    return shape[1];
  }
  throw ConfigError(fmt::format("there is no confusion matrix of results of shape {}{}", shape.to_string(),
                                task ? " that are " + to_text(task->task) : ""),
                    "it takes one vector of 2 to 10,000 classes for each example, or of a binary net one number");
}

std::size_t number_label_field(const Source& source) {
  const Fields& fields = source.info().fields;
  const auto found = std::ranges::find(fields, kLabelField, &Field::name);
  if (found != fields.end() && found->dtype == DType::kI64 && found->shape.rank() == 0) {
    return static_cast<std::size_t>(found - fields.begin());
  }
  throw ConfigError(source.info().name + ": has no field \"label\" of class numbers",
                    "a confusion matrix needs labelled data");
}

// Returns -log of the label's probability.
double cross_entropy(const Predictions& of, std::span<const float> values, std::size_t label) {
  const bool probabilities = of.task && !of.task->from_logits;
  if (values.size() == 1) {  // of two classes: the other one's logit is 0
    const auto x = static_cast<double>(values[0]), of_label = label == 1 ? x : probabilities ? 1 - x : -x;
    return probabilities ? -std::log(std::max(of_label, 1e-300)) : std::log1p(std::exp(-of_label));
  }
  if (probabilities) return -std::log(std::max(static_cast<double>(values[label]), 1e-300));
  const double max = *std::ranges::max_element(values);
  double sum = 0;
  for (const float value : values) sum += std::exp(static_cast<double>(value) - max);
  return std::log(sum) + max - static_cast<double>(values[label]);
}

std::span<const float> values_of_example(const Predictions& predictions, std::size_t example) {
  const std::size_t width = predictions.values.size() / predictions.records.size();
  return {predictions.values.data() + example * width, width};
}

bool is_worse(const ClassifiedExample& a, const ClassifiedExample& b) {
  return std::tuple(-a.loss, a.record) < std::tuple(-b.loss, b.record);
}

// Returns the number of the record's class among those of the net; nothing if the source does not know it or the
// net has no such class.
std::optional<std::int64_t> label_in_net(const Source& source, std::uint64_t record,
                                         const std::vector<std::string>& net_classes) {
  const std::optional<std::int64_t> label = source.label(record);
  const std::vector<std::string>& classes = source.info().classes;
  if (!label || net_classes.empty() || classes == net_classes) return label;
  if (*label < 0 || static_cast<std::size_t>(*label) >= classes.size()) return std::nullopt;
  const auto found = std::ranges::find(net_classes, classes[static_cast<std::size_t>(*label)]);
  return found == net_classes.end() ? std::nullopt : std::optional(found - net_classes.begin());
}

}  // namespace

std::optional<std::int64_t> predicted_class(const Predictions& predictions, std::size_t example) {
  const std::span<const float> values = values_of_example(predictions, example);
  if (std::ranges::any_of(values, [](float value) { return std::isnan(value); })) return std::nullopt;
  const auto& task = predictions.task;
  if (task && task->task == Task::kBinary) return values.front() > (task->from_logits ? 0.0F : 0.5F) ? 1 : 0;
  if (task ? task->task != Task::kCategorical : values.size() < 2) return std::nullopt;
  return std::ranges::max_element(values) - values.begin();
}

Classification classify(const Predictions& predictions, const Source& source, std::size_t worst) {
  Classification found{.classes = classes_of(predictions)};
  const auto classes = static_cast<std::size_t>(found.classes);
  const std::size_t field = number_label_field(source);
  found.confusion.resize(classes * classes);
  std::vector<ClassifiedExample> all;
  std::vector<std::byte> scratch;
  for (std::size_t i = 0; i < predictions.records.size(); ++i) {
    const std::span<const float> values = values_of_example(predictions, i);
    const std::uint64_t record = predictions.records[i];
    const std::int64_t label = read_label(source, record, field, scratch);
    if (label < 0 || label >= found.classes) continue;
    const std::optional<std::int64_t> best = predicted_class(predictions, i);
    if (!best) {
      throw DataError(ErrorCode::kInvalidArgument, "the net's result is NaN, which is no class",
                      {.source = source.info().name, .record = record},
                      "look for NaN in the record and in the net's weights");
    }
    ++found.confusion[static_cast<std::size_t>(label) * classes + static_cast<std::size_t>(*best)];
    all.push_back({.record = record,
                   .label = label,
                   .prediction = *best,
                   .loss = cross_entropy(predictions, values, static_cast<std::size_t>(label))});
  }
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(worst, all.size()));
  std::partial_sort(all.begin(), end, all.end(), is_worse);
  found.worst.assign(all.begin(), end);
  return found;
}

ExampleNames name_examples(const std::vector<std::uint64_t>& records, const Source& source,
                           const std::vector<std::string>& net_classes) {
  ExampleNames all;
  all.names.reserve(records.size());
  all.labels.reserve(records.size());
  for (const std::uint64_t record : records) {
    all.names.push_back(source.describe(record));
    all.labels.push_back(label_in_net(source, record, net_classes));
  }
  return all;
}

}  // namespace headrace
