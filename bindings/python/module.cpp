#include "headrace/bindings/python/module.h"

NB_MODULE(_native, module) {
  // Objects that live to the end of the program are no mistake: loaders in notebooks.
  nanobind::set_leak_warnings(false);
  module.doc() = "What is native of headrace. Use the package headrace.";
  module.attr("__version__") = HEADRACE_VERSION;
  headrace::python::bind_errors(module);
  headrace::python::bind_options(module);
  headrace::python::bind_plan_function(module);
  headrace::python::bind_operations(module);
  headrace::python::bind_datasets(module);
  headrace::python::bind_sources(module);
  headrace::python::bind_arrow(module);
  headrace::python::bind_tensor(module);
  headrace::python::bind_batch(module);
  headrace::python::bind_owned_batch(module);
  headrace::python::bind_loader(module);
  headrace::python::bind_launcher(module);
  headrace::python::bind_workers(module);
#ifdef HEADRACE_PYTHON_TRAIN
  headrace::python::bind_train(module);
#endif
}
