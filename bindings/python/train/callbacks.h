// Callbacks of a fit that are Python objects.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "headrace/train/callbacks.h"

namespace headrace::python {

// Returns the callback of each object: one of headrace.train's callbacks, a function of an epoch's report and the
// control of the fit, or an object with some of the methods on_train_begin, on_epoch_begin, on_step, on_epoch_end
// and on_train_end. The fitting thread calls them with the interpreter's lock; Python exceptions propagate out of
// fit() unchanged.
std::vector<Callback> callbacks_of(const nanobind::list& objects);

// While one lives, FitControl.model of callbacks on this thread is this object.
class FitOfModel {
 public:
  explicit FitOfModel(nanobind::object model);
  ~FitOfModel();
  FitOfModel(const FitOfModel&) = delete;
  FitOfModel& operator=(const FitOfModel&) = delete;

  static nanobind::object current();

 private:
  nanobind::object model_;
  FitOfModel* before_;
};

}  // namespace headrace::python
