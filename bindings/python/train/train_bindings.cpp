#include "headrace/bindings/python/module.h"
#include "headrace/bindings/python/options.h"
#include "headrace/bindings/python/train/bindings.h"
#include "headrace/bindings/python/train/interrupts.h"

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

LoaderOptions input_of(const nanobind::dict& options) {
  auto input = read_options<LoaderOptions>(options, "a run of the trainer");
  input.while_waiting = InterruptWatch::poll;
  return input;
}

std::vector<View> views_of(const std::optional<std::string>& word) {
  if (!word) return {};
  return choose<std::vector<View> (*)()>(
      "views", *word,
      {{"mirrored", mirrored_views}, {"mirrored_and_shifted", [] { return mirrored_and_shifted_views(); }}})();
}

}  // namespace headrace::python
