#include "headrace/bindings/python/module.h"
#include "headrace/bindings/python/train/bindings.h"

namespace headrace::python {

void bind_train(nanobind::module_& module) {
  nanobind::module_ train = module.def_submodule("train", "What is native of headrace.train.");
  bind_graph(train);
  bind_losses(train);
  bind_metrics(train);
  bind_python_objectives(train);
  bind_schedules(train);
  bind_optimizers(train);
  bind_python_rules(train);
  bind_callbacks(train);
  bind_replicas(train);
  bind_models(train);
  bind_steps(train);
  bind_record_runs(train);
}

}  // namespace headrace::python
