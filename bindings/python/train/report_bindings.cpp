#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "headrace/bindings/python/train/arrays.h"
#include "headrace/bindings/python/train/bindings.h"
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

// By variable; empty if they are not known.
nb::dict norms_by_variable(const std::optional<GradientNorms>& norms) {
  nb::dict by_variable;
  if (!norms) return by_variable;
  for (const auto& [name, norm] : norms->by_variable) by_variable[name.c_str()] = norm;
  return by_variable;
}

void bind_step_times(nb::module_& module) {
  nb::class_<StepTimes>(module, "StepTimes",
                        "Where the time of training steps went, by the device's own clock, in nanoseconds.")
      .def_ro("batches", &StepTimes::batches)
      .def_ro("elapsed_ns", &StepTimes::elapsed_ns)
      .def_ro("input_stall_ns", &StepTimes::input_stall_ns, "Waiting for a batch.")
      .def_ro("exposed_copy_ns", &StepTimes::exposed_copy_ns,
              "Waiting for a batch that was on its way to the device.")
      .def_ro("idle_ns", &StepTimes::idle_ns, "Waiting for the host for any other reason.")
      .def_ro("sync_wait_ns", &StepTimes::sync_wait_ns, "Part of the work: waiting for other replicas. CPUs only.")
      .def_ro("sums_ns", &StepTimes::sums_ns, "Sums over replicas that ran beside other work.")
      .def_ro("host_ns", &StepTimes::host_ns, "Of the submitting thread.")
      .def_prop_ro("input_stall_fraction", &StepTimes::input_stall_fraction)
      .def_prop_ro("exposed_copy_fraction", &StepTimes::exposed_copy_fraction)
      .def_prop_ro("sync_wait_fraction", &StepTimes::sync_wait_fraction)
      .def_prop_ro("device_idle_fraction", &StepTimes::device_idle_fraction)
      .def_prop_ro("hidden_sum_fraction", &StepTimes::hidden_sum_fraction);
}

// What both reports have.
template <typename Report>
void bind_details(nb::class_<Report>& report) {
  report.def_prop_ro("gradient_norm", [](const Report& of) { return norm_of(of.gradient_norms); })
      .def_prop_ro(
          "gradient_norms", [](const Report& of) { return norms_by_variable(of.gradient_norms); },
          "By variable, with fit(gradient_norms=True).")
      .def_ro("local_replicas", &Report::local_replicas, "Where the time of each replica of this process went.")
      .def_ro("workers", &Report::workers, "Of several workers, by rank: the sums of their replicas' times.");
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
  nb::class_<StepReport> step(module, "StepReport", "Where an epoch stands: means over the epoch so far.");
  bind_details(step);
  step.def_ro("epoch", &StepReport::epoch, "From 0.")
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
      .def("__repr__", [](const StepReport& report) {
        return report_text("StepReport", report.epoch, report.step, report.loss, report.metrics);
      });
}

void bind_epoch_report(nb::module_& module) {
  nb::class_<EpochReport> epoch(module, "EpochReport", "What an epoch gave.");
  bind_details(epoch);
  epoch.def_ro("epoch", &EpochReport::epoch, "From 0.")
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
      .def_ro("host_us_per_step", &EpochReport::host_us_per_step, "Of the submitting thread.")
      .def_ro("bad_records", &EpochReport::bad_records)
      .def_ro("learning_rates", &EpochReport::learning_rates)
      .def_prop_ro("metrics", [](const EpochReport& report) { return values_of_metrics(report.metrics); })
      .def_prop_ro("val_metrics", [](const EpochReport& report) { return values_of_metrics(report.val_metrics); })
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
  bind_step_times(module);
  bind_step_report(module);
  bind_epoch_report(module);
}

}  // namespace headrace::python
