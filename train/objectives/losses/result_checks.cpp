#include "headrace/train/objectives/losses/result_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"

namespace headrace {
namespace {

[[noreturn]] void refuse_labels(const std::string& who, const Field& labels, const std::string& wanted,
                                const std::string& hint) {
  throw ConfigError(fmt::format("field '{}' is {} of shape {}; {} wants {}", labels.name, to_string(labels.dtype),
                                labels.shape.to_string(), who, wanted),
                    hint);
}

bool is_class_number(const Field& labels) {
  return labels.dtype == DType::kI64 && !labels.shape.is_dynamic() && labels.shape.elements() == 1;
}

}  // namespace

void check_classes(const std::string& who, const ResultInfo& result) {
  if (result.shape.rank() == 1) return;
  throw ConfigError(
      fmt::format("{} wants one value a class, but {} gives {}", who, result.layer, result.shape.to_string()),
      "end the net with flatten() or global_average_pool(), and dense()");
}

void check_several_classes(const std::string& who, const ResultInfo& result) {
  check_classes(who, result);
  if (result.shape.elements() > 1) return;
  throw ConfigError(
      fmt::format("{} wants a value for each of two classes or more, but {} gives one", who, result.layer),
      "binary_crossentropy() is the loss of one value, which says whether an example is of class 1");
}

void check_logits(const ResultInfo& result) {
  if (result.values != ResultValues::kProbabilities) return;
  throw ConfigError("the loss is from logits, but " + result.layer + " gives probabilities",
                    joined({"leave the softmax or sigmoid out",
                            advice("use {}", named("CrossEntropyOptions::from_logits", "false"))}));
}

void check_softmax(const ResultInfo& result, bool from_logits) {
  if (from_logits) return check_logits(result);
  if (result.softmax) return;
  throw ConfigError(
      "the loss is from probabilities, but " + result.layer + " is no softmax",
      joined({"add graph.softmax()", advice("use {}", named("CrossEntropyOptions::from_logits", "true"))}));
}

ResultTask check_task(const std::string& who, const ResultInfo& result, std::initializer_list<Task> takes) {
  const std::string say =
      joined({"name metrics that fit in compile()", advice("leave {} empty", named("CompileOptions::metrics")),
              advice("say what the results are: {}", named("Loss::for_task()"))});
  if (!result.task) {
    throw ConfigError(fmt::format("{} depends on what the results of {} are, and nothing says it ({})", who,
                                  result.layer, result.why),
                      say);
  }
  if (takes.size() == 0 || std::ranges::find(takes, result.task->task) != takes.end()) return *result.task;
  std::vector<std::string> words;
  for (const Task task : takes) words.push_back(to_text(task));
  throw ConfigError(fmt::format("{} is of results that are {}, but those of {} are {} ({})", who,
                                fmt::join(words, " or "), result.layer, to_text(result.task->task), result.why),
                    say);
}

void check_class_scores(const std::string& who, const ResultInfo& result) {
  check_classes(who, result);
  check_task(who, result, {Task::kCategorical, Task::kBinary, Task::kMultiLabel});
}

void check_smoothing(float label_smoothing) {
  if (label_smoothing >= 0.0F && label_smoothing < 1.0F) return;
  throw ConfigError(fmt::format("label smoothing must be at least 0 and below 1, got {}", label_smoothing));
}

void check_class_number(const std::string& who, const Field& labels) {
  if (is_class_number(labels)) return;
  refuse_labels(who, labels, "one int64 class number an example",
                "categorical_crossentropy() takes one float32 for each class");
}

void check_class_shares(const std::string& who, const ResultInfo& result, const Field& labels) {
  if (labels.dtype == DType::kF32 && labels.shape == result.shape) return;
  refuse_labels(who, labels, fmt::format("float32 of shape {}, one for each class", result.shape.to_string()),
                is_class_number(labels) ? "sparse_categorical_crossentropy() takes class numbers; one_hot() makes "
                                          "shares of them"
                                        : "");
}

void check_class_labels(const std::string& who, const ResultInfo& result, const Field& labels) {
  if (!result.task || result.task->task != Task::kCategorical) return check_targets(who, result, labels);
  if (is_class_number(labels) || (labels.dtype == DType::kF32 && labels.shape == result.shape)) return;
  refuse_labels(
      who, labels, fmt::format("one int64 class number, or float32 of shape {}", result.shape.to_string()),
      joined({"name metrics that fit in compile()", advice("leave {} empty", named("CompileOptions::metrics"))}));
}

void check_targets(const std::string& who, const ResultInfo& result, const Field& labels) {
  const bool number = labels.dtype == DType::kF32 || labels.dtype == DType::kI64;
  const bool fits = labels.shape == result.shape || (labels.shape.rank() == 0 && result.shape.elements() == 1);
  if (number && fits) return;
  refuse_labels(
      who, labels, fmt::format("float32 or int64 of the result's shape, {}", result.shape.to_string()),
      is_class_number(labels) && result.shape.elements() > 1
          ? "sparse_categorical_crossentropy() takes class numbers; one_hot() makes a number for each of them"
          : "");
}

void check_vectors(const std::string& who, const ResultInfo& result) {
  if (result.shape.rank() >= 1) return;
  throw ConfigError(fmt::format("{} compares vectors, but {} gives one number", who, result.layer),
                    "end the net with a layer that gives several, as dense() does");
}

void check_vector_targets(const std::string& who, const ResultInfo& result, const Field& labels) {
  if (labels.dtype == DType::kF32 && labels.shape == result.shape) return;
  refuse_labels(who, labels, fmt::format("float32 of the result's shape, {}", result.shape.to_string()),
                labels.dtype == DType::kF32 ? "" : "cast(\"float32\") makes them so");
}

}  // namespace headrace
