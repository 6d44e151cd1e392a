// The parts of the extension `headrace._native`, on which the pure-Python package `headrace` is built.
#pragma once

#include <nanobind/nanobind.h>

namespace headrace::python {

// Each adds its classes and functions. REQUIRES: called in this order, as later ones use the classes of earlier
// ones.
void bind_errors(nanobind::module_& module);
void bind_options(nanobind::module_& module);
void bind_plan_function(nanobind::module_& module);
void bind_operations(nanobind::module_& module);
void bind_datasets(nanobind::module_& module);
void bind_sources(nanobind::module_& module);
void bind_arrow(nanobind::module_& module);
void bind_tensor(nanobind::module_& module);
void bind_batch(nanobind::module_& module);
void bind_owned_batch(nanobind::module_& module);
void bind_stats(nanobind::module_& module);  // LoaderStats, verdicts, and the tables of explain()
void bind_loader(nanobind::module_& module);
void bind_launcher(nanobind::module_& module);
void bind_workers(nanobind::module_& module);
void bind_train(nanobind::module_& module);  // train/, if it is built

}  // namespace headrace::python
