// The trainer in Python: the additions of each file of this folder to `headrace._native.train`.
#pragma once

#include <nanobind/nanobind.h>

#include "headrace/train/optimizers.h"

namespace headrace::python {

class OpenGraph;
class PythonModel;
class PythonStrategy;

// REQUIRES: called in this order, as later ones use the classes of earlier ones.
void bind_graph(nanobind::module_& module);
void bind_losses(nanobind::module_& module);
void bind_metrics(nanobind::module_& module);
void bind_python_objectives(nanobind::module_& module);  // losses and metrics that are Python functions
void bind_schedules(nanobind::module_& module);
void bind_optimizers(nanobind::module_& module);
void bind_python_rules(nanobind::module_& module);  // update rules that are Python functions
void bind_reports(nanobind::module_& module);       // StepReport and EpochReport
void bind_callbacks(nanobind::module_& module);
void bind_replicas(nanobind::module_& module);  // what Strategy.run() gives its function
void bind_models(nanobind::module_& module);
void bind_steps(nanobind::module_& module);        // Trainer, Evaluator and their batches
void bind_record_runs(nanobind::module_& module);  // evaluate_record() and predict_record()

// Returns the schedule that a number or a Schedule is. Throws ConfigError for a number that is no learning rate.
Schedule schedule_of(nanobind::handle value);

// Adds the class's methods conv(), max_pool() and so on.

// Adds the class's methods fit(), evaluate() and predict(), which take long and run without the interpreter's
// lock.
void bind_runs(nanobind::class_<PythonModel>& model);

// Adds the class's methods run(), on(), reduce() and so on.
void bind_strategy_calls(nanobind::class_<PythonStrategy>& strategy);

}  // namespace headrace::python
