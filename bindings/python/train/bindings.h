// The trainer in Python: what each file of this folder adds to `headrace._native.train`.
#pragma once

#include <nanobind/nanobind.h>

namespace headrace::python {

// In this order, as later ones use the classes of those before.
void bind_graph(nanobind::module_& module);
void bind_losses(nanobind::module_& module);
void bind_metrics(nanobind::module_& module);
void bind_schedules(nanobind::module_& module);
void bind_optimizers(nanobind::module_& module);
void bind_callbacks(nanobind::module_& module);
void bind_models(nanobind::module_& module);

}  // namespace headrace::python
