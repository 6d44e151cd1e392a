// Losses and metrics that are Python functions: headrace/_objectives.py prepares them.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <utility>

#include "headrace/bindings/python/callable.h"
#include "headrace/bindings/python/module.h"
#include "headrace/bindings/python/train/arrays.h"
#include "headrace/bindings/python/train/bindings.h"

namespace headrace::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

nb::object array_or_none(LentArrays& lent, const TensorView& view) {
  return view.defined() ? lent.array(view, true) : nb::none();
}

// function(labels, results, losses, gradient or None) writes into the last two.
Loss python_loss(const std::string& name, nb::object function, const std::string& reduction) {
  const auto python = std::make_shared<const PythonCallable>(std::move(function));
  Loss loss = host_batch_loss(name, [python, where = "loss '" + name + "'"](const HostBatch& batch) {
    call_with_arrays(*python, where, [&](nb::handle call, LentArrays& lent) {
      const TensorView losses{batch.losses.data(), {static_cast<std::int64_t>(batch.losses.size())}, DType::kF32};
      call(lent.array(batch.labels, true), lent.array(batch.result, true), lent.array(losses, true),
           array_or_none(lent, batch.gradient));
    });
  });
  loss.reduction = choose<Reduction>("reduction", reduction);
  return loss;
}

// (values, shape)
using ValueTuple = std::pair<std::vector<double>, std::vector<std::int64_t>>;

MetricValue value_from(const PythonCallable& python, const std::string& where, std::span<const double> sums) {
  const auto [values, extents] = python.call_in_run(where, [&](nb::handle result) {
    return nb::cast<ValueTuple>(result(std::vector<double>(sums.begin(), sums.end())));
  });
  return {.values = values, .shape = Shape(std::span<const std::int64_t>(extents))};
}

// update(labels, results, weights or None, sums) adds to the last; result(sums) gives (values, shape).
Metric python_metric(const std::string& name, int sums, nb::object update, nb::object result, bool takes_weights,
                     const std::string& better) {
  const auto adds = std::make_shared<const PythonCallable>(std::move(update));
  const auto gives = std::make_shared<const PythonCallable>(std::move(result));
  const std::string label = "metric '" + name + "'";
  return host_metric({.name = name,
                      .sums = sums,
                      .add =
                          [adds, where = label + ", update()"](const HostBatch& batch, std::span<double> into) {
                            call_with_arrays(*adds, where, [&](nb::handle call, LentArrays& lent) {
                              call(lent.array(batch.labels, true), lent.array(batch.result, true),
                                   array_or_none(lent, batch.weights), lent.array(into));
                            });
                          },
                      .value = [gives, where = label + ", result()"](
                                   std::span<const double> from) { return value_from(*gives, where, from); },
                      .takes_weights = takes_weights,
                      .better = choose<Better>("better", better)});
}

}  // namespace

CustomParts custom_parts_of(const nb::dict& parts, const DeviceGroup& devices) {
  return {.losses = nb::cast<std::vector<Loss>>(parts["losses"]),
          .metrics = nb::cast<std::vector<Metric>>(parts["metrics"]),
          .layers = python_layer_makers(nb::cast<nb::dict>(parts["layers"]), devices),
          .rules = python_rule_makers(nb::cast<nb::dict>(parts["optimizers"]))};
}

void bind_python_objectives(nb::module_& module) {
  module.def("python_loss", &python_loss, "name"_a, "function"_a, "reduction"_a);
  module.def("python_metric", &python_metric, "name"_a, "sums"_a, "update"_a, "result"_a, "takes_weights"_a,
             "better"_a);
}

}  // namespace headrace::python
