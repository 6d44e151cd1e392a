// The tables of the built-in kinds of losses and metrics.
#include "headrace/train/losses.h"
#include "headrace/train/metrics.h"

namespace headrace {
namespace {

// `make`: a function of an Options.
template <typename Options, typename Make>
auto from_fields(const Make& make) {
  return [make](OptionVisitor& visit) {
    Options options;
    options.each_field(visit);
    return make(options);
  };
}

}  // namespace

const std::vector<LossKind>& loss_kinds() {
  using Elements = ElementLossOptions;
  static const std::vector<LossKind> kinds{
      {.name = "sparse_categorical_crossentropy",
       .doc = "Labels are class numbers.",
       .make = from_fields<SparseCrossEntropyOptions>(sparse_categorical_crossentropy)},
      {.name = "categorical_crossentropy",
       .doc = "Labels are float32, one for each class: one_hot(), smoothed, or mixed.",
       .make = from_fields<CrossEntropyOptions>(categorical_crossentropy)},
      {.name = "binary_crossentropy",
       .doc = "Of one result whether the example is of class 1, of several whether it has each label.",
       .make = from_fields<BinaryCrossEntropyOptions>(binary_crossentropy)},
      {.name = "mean_squared_error", .doc = "", .make = from_fields<Elements>(mean_squared_error)},
      {.name = "mean_absolute_error", .doc = "", .make = from_fields<Elements>(mean_absolute_error)},
      {.name = "huber", .doc = "Squared below an error of 1, linear above.", .make = from_fields<Elements>(huber)},
      {.name = "hinge",
       .doc = "The mean of max(0, 1 - s x): labels above 0 stand for s = 1, others for s = -1.",
       .make = from_fields<Elements>(hinge)},
      {.name = "kl_divergence",
       .doc = "Labels and results are probabilities.",
       .make = from_fields<Elements>(kl_divergence)},
      {.name = "cosine_similarity",
       .doc = "Minus the cosine of the angle between result and label, float32 both, along the last axis.",
       .make = from_fields<Elements>(cosine_similarity)}};
  return kinds;
}

const std::vector<MetricKind>& metric_kinds() {
  const auto plain = [](Metric (*make)()) { return [make](OptionVisitor&) { return make(); }; };
  static const std::vector<MetricKind> kinds{
      {.name = "accuracy",
       .doc =
           "The share of examples whose largest result is their label's or, of binary and multi-label results, of "
           "labels that are right: a probability above 0.5 for a label of at least 0.5.",
       .make = plain(accuracy)},
      {.name = "binary_accuracy",
       .doc = "accuracy() of binary and multi-label results alone.",
       .make = plain(binary_accuracy)},
      {.name = "top_k",
       .doc = "The share of examples whose label is among the k largest results: 'top_5'.",
       .make = from_fields<TopKOptions>([](const TopKOptions& options) { return top_k(options.k); }),
       .required = TopKOptions::kRequired},
      {.name = "confusion_matrix",
       .doc = "How often the model predicted one class (the column) for examples of another (the row).",
       .make = plain(confusion_matrix)},
      {.name = "precision",
       .doc = "How many of the predictions of a class are right, averaged as in scikit-learn.",
       .make = from_fields<ClassScoreOptions>(precision)},
      {.name = "recall",
       .doc = "How many examples of a class are found, averaged as in scikit-learn.",
       .make = from_fields<ClassScoreOptions>(recall)},
      {.name = "f1_score",
       .doc = "The harmonic mean of precision and recall, averaged as in scikit-learn.",
       .make = from_fields<ClassScoreOptions>(f1_score)},
      {.name = "auc",
       .doc = "The area under the curve, at thresholds as in Keras: 'auc', or of curve='pr' 'pr_auc'.",
       .make = from_fields<AucOptions>(auc)}};
  return kinds;
}

}  // namespace headrace
