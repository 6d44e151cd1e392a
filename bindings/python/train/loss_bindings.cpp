#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "headrace/bindings/python/train/bindings.h"
#include "headrace/bindings/python/train/words.h"
#include "headrace/train/losses.h"
#include "headrace/train/metrics.h"

namespace headrace::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

void bind_loss_class(nb::module_& module) {
  nb::class_<Loss>(
      module, "Loss",
      "What training makes small. 0.7 * a + 0.3 * b is the weighted sum of two. reduction='sum' adds a "
      "step's gradients up; the loss that is reported stays the mean.")
      .def("of", &Loss::of, "layer"_a, "The same of a layer's result, for a model of several outputs.")
      .def("against", &Loss::against, "field"_a, "The same of another field of the data than 'label'.")
      .def("weighted_by", &Loss::weighted_by, "field"_a,
           "The same with each example's loss multiplied by a float32 field of the data.")
      .def("class_weighted", &Loss::class_weighted, "weights"_a,
           "The same with each example's loss multiplied by its class's weight, in training only.")
      .def(
          "for_task",
          [](const Loss& loss, const std::string& task, std::optional<bool> from_logits) {
            return loss.for_task(task_named(task), from_logits);
          },
          "task"_a, nb::kw_only(), "from_logits"_a = nb::none(),
          "The same with what the results are, for metrics and predictions: 'regression', 'binary', 'multi_label' "
          "or "
          "'categorical', for a custom loss or where several readings fit. from_logits: whether they are logits, "
          "where neither the loss nor the last layer says it.")
      .def("__add__", [](const Loss& a, const Loss& b) { return a + b; })
      .def("__mul__", [](const Loss& loss, float weight) { return weight * loss; })
      .def("__rmul__", [](const Loss& loss, float weight) { return weight * loss; })
      .def("__repr__", [](const Loss& loss) {
        std::string text;
        for (const LossTerm& term : loss.terms) text += (text.empty() ? "" : " + ") + term.function->name();
        return "Loss(" + text + ")";
      });
}

}  // namespace

void bind_losses(nb::module_& module) {
  bind_loss_class(module);
  module.def(
      "sparse_categorical_crossentropy",
      [](bool from_logits, float label_smoothing, const std::string& reduction) {
        return sparse_categorical_crossentropy({.from_logits = from_logits,
                                                .label_smoothing = label_smoothing,
                                                .reduction = reduction_of(reduction)});
      },
      nb::kw_only(), "from_logits"_a = true, "label_smoothing"_a = 0.0F, "reduction"_a = "mean",
      "Labels are class numbers. from_logits=False: the net ends in softmax.");
  module.def(
      "categorical_crossentropy",
      [](bool from_logits, float label_smoothing, const std::string& reduction) {
        return categorical_crossentropy({.from_logits = from_logits,
                                         .label_smoothing = label_smoothing,
                                         .reduction = reduction_of(reduction)});
      },
      nb::kw_only(), "from_logits"_a = true, "label_smoothing"_a = 0.0F, "reduction"_a = "mean",
      "Labels are float32, one for each class: one_hot(), smoothed, or mixed.");
  module.def(
      "binary_crossentropy",
      [](bool from_logits, const std::string& reduction) {
        return binary_crossentropy({.from_logits = from_logits, .reduction = reduction_of(reduction)});
      },
      nb::kw_only(), "from_logits"_a = true, "reduction"_a = "mean",
      "Of one result whether the example is of class 1, of several whether it has each label. from_logits=False: "
      "the "
      "net ends in a sigmoid.");
  module.def(
      "mean_squared_error",
      [](const std::string& reduction) { return mean_squared_error(reduction_of(reduction)); }, nb::kw_only(),
      "reduction"_a = "mean");
  module.def(
      "mean_absolute_error",
      [](const std::string& reduction) { return mean_absolute_error(reduction_of(reduction)); }, nb::kw_only(),
      "reduction"_a = "mean");
  module.def(
      "huber", [](const std::string& reduction) { return huber(reduction_of(reduction)); }, nb::kw_only(),
      "reduction"_a = "mean", "Squared below an error of 1, linear above.");
  module.def(
      "hinge", [](const std::string& reduction) { return hinge(reduction_of(reduction)); }, nb::kw_only(),
      "reduction"_a = "mean", "Of labels that are above 0, or not.");
  module.def(
      "kl_divergence", [](const std::string& reduction) { return kl_divergence(reduction_of(reduction)); },
      nb::kw_only(), "reduction"_a = "mean", "Labels and results are probabilities.");
  module.def(
      "cosine_similarity", [](const std::string& reduction) { return cosine_similarity(reduction_of(reduction)); },
      nb::kw_only(), "reduction"_a = "mean",
      "Minus the cosine of the angle between result and label, float32 both, along the last axis.");
}

ClassScoreOptions score_options(const std::string& average, std::optional<float> threshold) {
  return {.average = average_of(average), .threshold = threshold};
}

void bind_class_scores(nb::module_& module) {
  module.def(
      "precision",
      [](const std::string& average, std::optional<float> threshold) {
        return precision(score_options(average, threshold));
      },
      nb::kw_only(), "average"_a = "macro", "threshold"_a = nb::none(),
      "How many of the predictions of a class are right. average: 'macro', 'micro', 'weighted' or 'none', as in "
      "scikit-learn. threshold: every class whose probability is above it is predicted; None: the largest "
      "or, of results that are not categorical, those above 0.5.");
  module.def(
      "recall",
      [](const std::string& average, std::optional<float> threshold) {
        return recall(score_options(average, threshold));
      },
      nb::kw_only(), "average"_a = "macro", "threshold"_a = nb::none(),
      "How many examples of a class are found. Options as for precision().");
  module.def(
      "f1_score",
      [](const std::string& average, std::optional<float> threshold) {
        return f1_score(score_options(average, threshold));
      },
      nb::kw_only(), "average"_a = "macro", "threshold"_a = nb::none(),
      "The harmonic mean of precision and recall. Options as for precision().");
  module.def(
      "auc",
      [](const std::string& curve, int thresholds, const std::string& average) {
        return auc({.curve = choose<AucCurve>("curve", curve,
                                              {{"roc", AucCurve::kRoc}, {"pr", AucCurve::kPrecisionRecall}}),
                    .thresholds = thresholds,
                    .average = average_of(average)});
      },
      nb::kw_only(), "curve"_a = "roc", "thresholds"_a = 200, "average"_a = "macro",
      "The area under the curve, at thresholds as in Keras: 'auc', or of curve='pr' 'pr_auc'.");
}

void bind_metrics(nb::module_& module) {
  bind_class_scores(module);
  nb::class_<Metric>(module, "Metric", "What is counted beside the loss: exact sums over examples and replicas.")
      .def(nb::init<const Loss&>(), "loss"_a, "The mean of a loss.")
      .def("of", &Metric::of, "layer"_a, "The same of a layer's result, for a model of several outputs.")
      .def("weighted", &Metric::weighted,
           "The same with each example counted by its weight in the loss: 'weighted_accuracy'.")
      .def_prop_ro(
          "name",
          [](const Metric& metric) { return (metric.is_weighted ? "weighted_" : "") + metric.function->name(); })
      .def("__repr__", [](const Metric& metric) { return "Metric(" + metric.function->name() + ")"; });
  nb::implicitly_convertible<Loss, Metric>();
  module.def(
      "accuracy", [] { return accuracy(); },
      "The share of examples whose largest result is their label's or, of binary and multi-label results, of "
      "labels "
      "that are right: a probability above 0.5 for a label of at least 0.5.");
  module.def(
      "binary_accuracy", [] { return binary_accuracy(); }, "accuracy() of binary and multi-label results alone.");
  module.def(
      "top_k", [](int k) { return top_k(k); }, "k"_a, "Whose label is among the k largest: 'top_5'.");
  module.def(
      "confusion_matrix", [] { return confusion_matrix(); },
      "How often the model said one class (the column) of examples of another (the row).");
}

}  // namespace headrace::python
