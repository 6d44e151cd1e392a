// The trainer in Python: the additions of each file of this folder to `headrace._native.train`, and what they
// convert for each other.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/device_group.h"
#include "headrace/train/callbacks.h"
#include "headrace/train/checkpoints.h"
#include "headrace/train/fit_options.h"
#include "headrace/train/layers.h"
#include "headrace/train/metrics.h"
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

// The values of metrics in Python.

// Returns a number, or a NumPy array of float64 of the metric's shape.
nanobind::object value_of_metric(const MetricValue& metric);
// Returns the values by name.
nanobind::dict values_of_metrics(const std::vector<MetricValue>& metrics);

// Callbacks of a fit that are Python objects.

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

// Parts of a net or a training that are Python objects: their classes are in headrace/_layers.py,
// headrace/_update_rules.py and headrace/_objectives.py. All functions need the GIL.

// Returns the layer for inputs of these shapes. The streams' threads call its methods with the interpreter's lock,
// on arrays that are the replica's memory; Python's exceptions end the run and are raised by it. Throws
// ConfigError unless the host reads and writes the memory of all devices in place.
std::shared_ptr<const Layer> python_layer(const nanobind::object& layer, const std::string& name,
                                          const std::vector<Shape>& inputs, const DeviceGroup& devices);

// Returns the makers of the layers in a dict of kinds and functions of the text that config() became. REQUIRES:
// `devices` lives as long as the makers.
LayerMakers python_layer_makers(const nanobind::dict& factories, const DeviceGroup& devices);

// Returns the makers of the rules of the optimizers in a dict, by name. A maker throws ConfigError if the file has
// other options than its optimizer's rule. Throws ConfigError if the rule of an optimizer is one of the library's.
UpdateMakers python_rule_makers(const nanobind::dict& optimizers);

// Returns the parts in the dict that headrace/_custom_parts.py makes of custom_objects: "losses", "metrics",
// "layers" and "optimizers". REQUIRES: `devices` lives as long as the parts.
CustomParts custom_parts_of(const nanobind::dict& parts, const DeviceGroup& devices);

// Converts Python's options of a run to the trainer's.

// Reads input options from a dict with options of headrace.Loader. Throws ConfigError for others, naming the valid
// ones. A wait for a batch checks for signals.
LoaderOptions input_of(const nanobind::dict& options);

// Parses None, "mirrored" or "mirrored_and_shifted".
std::vector<View> views_of(const std::optional<std::string>& word);

}  // namespace headrace::python
