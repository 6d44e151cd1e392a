// Callbacks of a fit that are Python objects.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "headrace/train/callbacks.h"

namespace headrace::python {

// Of each object of the list: one of headrace.train's own callbacks, a function of an epoch's report and the
// control of the fit, or an object with some of the methods on_train_begin, on_epoch_begin, on_step, on_epoch_end
// and on_train_end. Called with the interpreter's lock by the thread that fits; what Python raises leaves fit() as
// it is.
std::vector<Callback> callbacks_of(const nanobind::list& objects);

}  // namespace headrace::python
