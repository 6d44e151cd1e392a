// What takes time: fit, evaluate and predict.
#pragma once

#include <nanobind/nanobind.h>

#include "headrace/bindings/python/train/python_model.h"

namespace headrace::python {

// The class's methods fit(), evaluate() and predict(). They run without the interpreter's lock.
void bind_runs(nanobind::class_<PythonModel>& model);

}  // namespace headrace::python
