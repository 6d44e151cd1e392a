#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "headrace/bindings/python/train/arrays.h"
#include "headrace/bindings/python/train/bindings.h"
#include "headrace/bindings/python/train/reports.h"
#include "headrace/train/callbacks.h"

namespace headrace::python {
namespace {

namespace nb = nanobind;

nb::dict dict_of_epoch(const EpochReport& report) {
  nb::dict values;
  for (const auto& [name, value] : epoch_values(report)) values[name.c_str()] = value;
  return values;
}

std::optional<double> norm_of(const std::optional<GradientNorms>& norms) {
  return norms ? std::optional<double>(norms->all) : std::nullopt;
}

// "EpochReport(epoch=0, steps=100, loss=0.4021, accuracy=0.8534)"
std::string report_text(const char* kind, int epoch, std::uint64_t steps, double loss,
                        const std::vector<MetricValue>& metrics) {
  std::string text = fmt::format("{}(epoch={}, steps={}, loss={:.4g}", kind, epoch, steps, loss);
  for (const MetricValue& metric : metrics) {
    if (metric.is_number()) text += fmt::format(", {}={:.4g}", metric.name, metric.number());
  }
  return text + ")";
}

void bind_step_report(nb::module_& module) {
  nb::class_<StepReport>(module, "StepReport", "Where an epoch stands: means over the epoch so far.")
      .def_ro("epoch", &StepReport::epoch, "From 0.")
      .def_ro("step", &StepReport::step, "Optimizer steps submitted this epoch.")
      .def_ro("steps", &StepReport::steps, "In the whole epoch.")
      .def_ro("global_step", &StepReport::global_step)
      .def_ro("seconds", &StepReport::seconds)
      .def_ro("loss", &StepReport::loss)
      .def_ro("accuracy", &StepReport::accuracy)
      .def_ro("examples_per_second", &StepReport::examples_per_second)
      .def_ro("input_stall_fraction", &StepReport::input_stall_fraction)
      .def_ro("exposed_copy_fraction", &StepReport::exposed_copy_fraction)
      .def_ro("device_idle_fraction", &StepReport::device_idle_fraction)
      .def_ro("remaining_seconds", &StepReport::remaining_seconds)
      .def_ro("learning_rates", &StepReport::learning_rates)
      .def_prop_ro("metrics", [](const StepReport& report) { return values_of_metrics(report.metrics); })
      .def_prop_ro("gradient_norm", [](const StepReport& report) { return norm_of(report.gradient_norms); })
      .def("__repr__", [](const StepReport& report) {
        return report_text("StepReport", report.epoch, report.step, report.loss, report.metrics);
      });
}

void bind_epoch_report(nb::module_& module) {
  nb::class_<EpochReport>(module, "EpochReport", "What an epoch gave.")
      .def_ro("epoch", &EpochReport::epoch, "From 0.")
      .def_ro("epochs", &EpochReport::epochs)
      .def_ro("steps", &EpochReport::steps)
      .def_ro("planned_steps", &EpochReport::planned_steps)
      .def_ro("global_step", &EpochReport::global_step)
      .def_ro("seconds", &EpochReport::seconds)
      .def_ro("loss", &EpochReport::loss)
      .def_ro("accuracy", &EpochReport::accuracy)
      .def_ro("val_loss", &EpochReport::val_loss)
      .def_ro("val_accuracy", &EpochReport::val_accuracy)
      .def_ro("examples_per_second", &EpochReport::examples_per_second)
      .def_ro("input_stall_fraction", &EpochReport::input_stall_fraction)
      .def_ro("exposed_copy_fraction", &EpochReport::exposed_copy_fraction)
      .def_ro("device_idle_fraction", &EpochReport::device_idle_fraction)
      .def_ro("bad_records", &EpochReport::bad_records)
      .def_ro("learning_rates", &EpochReport::learning_rates)
      .def_prop_ro("metrics", [](const EpochReport& report) { return values_of_metrics(report.metrics); })
      .def_prop_ro("val_metrics", [](const EpochReport& report) { return values_of_metrics(report.val_metrics); })
      .def_prop_ro("gradient_norm", [](const EpochReport& report) { return norm_of(report.gradient_norms); })
      .def_prop_ro("values", &dict_of_epoch, "What History remembers of the epoch, by its names.")
      .def("__repr__", [](const EpochReport& report) {
        return report_text("EpochReport", report.epoch, report.steps, report.loss, report.metrics);
      });
}

}  // namespace

nb::object value_of_metric(const MetricValue& metric) {
  if (metric.is_number()) return nb::float_(metric.number());
  return array_of(metric.values, metric.shape);
}

nb::dict values_of_metrics(const std::vector<MetricValue>& metrics) {
  nb::dict values;
  for (const MetricValue& metric : metrics) values[metric.name.c_str()] = value_of_metric(metric);
  return values;
}

void bind_reports(nb::module_& module) {
  bind_step_report(module);
  bind_epoch_report(module);
}

}  // namespace headrace::python
