// The trainer in Python: what each file of this folder adds to `headrace._native.train`.
#pragma once

#include <nanobind/nanobind.h>

namespace headrace::python {

class PythonModel;

// In this order, as later ones use the classes of those before.
void bind_graph(nanobind::module_& module);
void bind_losses(nanobind::module_& module);
void bind_metrics(nanobind::module_& module);
void bind_schedules(nanobind::module_& module);
void bind_optimizers(nanobind::module_& module);
void bind_reports(nanobind::module_& module);  // StepReport and EpochReport
void bind_callbacks(nanobind::module_& module);
void bind_models(nanobind::module_& module);

// The class's methods fit(), evaluate() and predict(), which take long: they run without the interpreter's lock.
void bind_runs(nanobind::class_<PythonModel>& model);

}  // namespace headrace::python
