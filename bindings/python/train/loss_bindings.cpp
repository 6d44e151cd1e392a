#include <fmt/format.h>
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "headrace/bindings/python/options.h"
#include "headrace/bindings/python/train/bindings.h"
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

void show_reduction(Reduction& reduction, OptionVisitor& visit) {
  visit("reduction", reduction,
        "How the gradient combines the examples' losses; the reported loss is their mean.");
}

void bind_loss(nb::module_& module, const LossKind& kind) {
  OptionLister lister;
  kind.make(lister);
  Reduction usual = Reduction::kMean;
  show_reduction(usual, lister);
  const std::string signature = fmt::format("def {}({}) -> Loss", kind.name, parameters_text(lister.list()));
  const auto make = [&kind](const nb::kwargs& given) {
    OptionReader reader(given);
    Loss loss = kind.make(reader);
    show_reduction(loss.reduction, reader);
    reader.refuse_unknown(kind.name + "()");
    return loss;
  };
  module.def(kind.name.c_str(), make, "options"_a, nb::sig(signature.c_str()),
             parameters_doc(kind.doc, lister.list()).c_str());
}

void bind_metric(nb::module_& module, const MetricKind& kind) {
  OptionLister lister;
  kind.make(lister);
  const Positional placed{.names = first_names(lister.list(), kind.required)};
  const std::string signature =
      fmt::format("def {}({}) -> Metric", kind.name, parameters_text(lister.list(), placed));
  const auto make = [&kind, placed, signature](const nb::args& given, const nb::kwargs& named) {
    OptionReader reader(given_options(given, named, placed, signature));
    Metric metric = kind.make(reader);
    reader.refuse_unknown(kind.name + "()");
    return metric;
  };
  module.def(kind.name.c_str(), make, "placed"_a, "named"_a, nb::sig(signature.c_str()),
             parameters_doc(kind.doc, lister.list()).c_str());
}

}  // namespace

void bind_losses(nb::module_& module) {
  bind_loss_class(module);
  for (const LossKind& kind : loss_kinds()) bind_loss(module, kind);
}

void bind_metrics(nb::module_& module) {
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
  for (const MetricKind& kind : metric_kinds()) bind_metric(module, kind);
}

}  // namespace headrace::python
