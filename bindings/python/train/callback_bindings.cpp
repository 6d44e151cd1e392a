#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "headrace/bindings/python/callable.h"
#include "headrace/bindings/python/options.h"
#include "headrace/bindings/python/train/bindings.h"
#include "headrace/bindings/python/train/interrupts.h"
#include "headrace/devices/base/error.h"

namespace headrace::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

thread_local FitOfModel* running_fit = nullptr;  // the innermost one

// The control of a running fit, as long as the callback runs that was given it.
class OpenControl {
 public:
  explicit OpenControl(FitControl& control) : control_(&control) {}

  FitControl& get() const {
    if (control_ != nullptr) return *control_;
    throw ConfigError("this control was of a call that is over", "use the one that each call is given");
  }
  bool is_closed() const noexcept { return control_ == nullptr; }
  void close() noexcept { control_ = nullptr; }

 private:
  FitControl* control_;
};

// function(arguments..., control) with the interpreter's lock.
template <typename... Arguments>
void call_python(const SharedObject& function, FitControl& control, const Arguments&... arguments) {
  const nb::gil_scoped_acquire lock;
  const auto open = std::make_shared<OpenControl>(control);
  struct Closing {
    OpenControl& control;
    ~Closing() { control.close(); }
  } const closing{*open};
  try {
    object_of(function)(arguments..., open);
  } catch (const nb::python_error& raised) {
    if (!InterruptWatch::keep(raised)) throw;
  }
}

// Returns the object's method; null if it has none.
SharedObject method_of(nb::handle object, const char* name) {
  nb::object method = nb::getattr(object, name, nb::none());
  return method.is_none() ? nullptr : share(std::move(method));
}

void add_calls(Callback& callback, nb::handle object) {
  if (const SharedObject begin = method_of(object, "on_train_begin")) {
    callback.on_train_begin = [begin](FitControl& control) { call_python(begin, control); };
  }
  if (const SharedObject begin = method_of(object, "on_epoch_begin")) {
    callback.on_epoch_begin = [begin](int epoch, FitControl& control) { call_python(begin, control, epoch); };
  }
  if (const SharedObject step = method_of(object, "on_step")) {
    callback.on_step = [step](const StepReport& report, FitControl& control) {
      call_python(step, control, report);
    };
  }
  if (const SharedObject end = method_of(object, "on_epoch_end")) {
    callback.on_epoch_end = [end](const EpochReport& report, FitControl& control) {
      call_python(end, control, report);
    };
  }
  if (const SharedObject end = method_of(object, "on_train_end")) {
    callback.on_train_end = [end](FitControl& control) { call_python(end, control); };
  }
}

// Adds the callback's state for checkpoints: state_dict() and load_state_dict(), as JSON.
void add_state(Callback& callback, nb::handle object) {
  const SharedObject save = method_of(object, "state_dict"), load = method_of(object, "load_state_dict");
  if (!save || !load) return;
  callback.save = [save] {
    const nb::gil_scoped_acquire lock;
    return nb::cast<std::string>(nb::module_::import_("json").attr("dumps")(object_of(save)()));
  };
  callback.restore = [load](const std::string& text) {
    const nb::gil_scoped_acquire lock;
    object_of(load)(nb::module_::import_("json").attr("loads")(text));
  };
}

bool has_calls(const Callback& callback) {
  return callback.on_train_begin || callback.on_epoch_begin || callback.on_step || callback.on_epoch_end ||
         callback.on_train_end;
}

Callback callback_of(nb::handle object) {
  if (nb::isinstance<Callback>(object)) return nb::cast<Callback>(object);
  Callback callback;
  callback.name = nb::cast<std::string>(nb::str(nb::getattr(object, "name", object.type().attr("__name__"))));
  callback.every_steps = nb::cast<std::uint64_t>(nb::getattr(object, "every_steps", nb::int_(0)));
  add_calls(callback, object);
  if (has_calls(callback)) {
    add_state(callback, object);
    return callback;
  }
  if (nb::hasattr(object, "__call__")) {
    const SharedObject end = share(nb::borrow(object));
    callback.on_epoch_end = [end](const EpochReport& report, FitControl& control) {
      call_python(end, control, report);
    };
    return callback;
  }
  throw ConfigError("a " + callback.name + " is no callback",
                    "give functions of (report, control), or objects with on_epoch_end(report, control), "
                    "on_step(report, control) or on_train_begin(control)");
}

void bind_control(nb::module_& module) {
  nb::class_<OpenControl>(module, "FitControl", "What a callback may do to the fit that called it.")
      .def(
          "request_stop", [](const OpenControl& control) { control.get().request_stop(); },
          "Ends the fit after the present step (on_step) or epoch (on_epoch_end).")
      .def_prop_ro("stop_requested", [](const OpenControl& control) { return control.get().stop_requested(); })
      .def_prop_rw(
          "learning_rate_scale", [](const OpenControl& control) { return control.get().learning_rate_scale(); },
          [](const OpenControl& control, double scale) { control.get().set_learning_rate_scale(scale); },
          "A factor on all learning rates, on top of their schedules, from the next step on.")
      .def_prop_ro(
          "learning_rates", [](const OpenControl& control) { return control.get().learning_rates(); },
          "Of the next step: the optimizer's own rate, then that of each of its groups.")
      .def_prop_ro(
          "model",
          [](const OpenControl& control) {
            control.get();
            return FitOfModel::current();
          },
          "The model that is trained.")
      .def(
          "input_stats",
          [](const OpenControl& control) {
            return nb::cast<nb::dict>(nb::cast(control.get().input_stats()).attr("to_dict")());
          },
          "What the engine did for this epoch's training so far, as Loader.stats() gives it.")
      .def("__repr__", [](const OpenControl& control) {
        if (control.is_closed()) return std::string("FitControl(of a call that is over)");
        return fmt::format("FitControl(learning_rates=[{:.4g}], stop_requested={})",
                           fmt::join(control.get().learning_rates(), ", "),
                           control.get().stop_requested() ? "True" : "False");
      });
}

// A callback with its options as arguments, of which the first may stand by its place.
template <typename Options, typename Make>
void bind_watching(nb::module_& module, const std::string& name, const Make& make, const char* doc) {
  const std::vector<ListedOption> options = list_options(Options());
  const Positional placed{.names = first_names(options, 1), .required = false};
  const std::string signature = fmt::format("def {}({}) -> ReadyCallback", name, parameters_text(options, placed));
  module.def(
      name.c_str(),
      [make, placed, signature, whose = name + "()"](const nb::args& given, const nb::kwargs& named) {
        return make(read_options<Options>(given_options(given, named, placed, signature), whose));
      },
      "given"_a, "named"_a, nb::sig(signature.c_str()), parameters_doc(doc, options).c_str());
}

void bind_ready_made(nb::module_& module) {
  bind_watching<EarlyStoppingOptions>(module, "early_stopping", &early_stopping,
                                      "Ends the fit when a value of the history no longer improves.");
  bind_watching<ReduceLrOnPlateauOptions>(
      module, "reduce_lr_on_plateau", &reduce_lr_on_plateau,
      "Reduces the learning rates when a value of the history no longer improves.");
  module.def(
      "on_chief", [](nb::handle callback) { return on_chief(callback_of(callback)); }, "callback"_a,
      "The callback for the chief alone, for what writes files or prints: of several workers others do not call "
      "it.");
  module.def("csv_logger", &csv_logger, "path"_a, "One line an epoch: its number from 1, and History's values.");
  const std::vector<ListedOption> logged = list_options(TensorBoardOptions());
  module.def(
      "tensorboard",
      [](const std::filesystem::path& folder, const nb::kwargs& given) {
        return tensorboard(folder, read_options<TensorBoardOptions>(given, "tensorboard()"));
      },
      "folder"_a, "options"_a,
      nb::sig(fmt::format("def tensorboard(folder: str | os.PathLike[str], {}) -> ReadyCallback",
                          parameters_text(logged))
                  .c_str()),
      parameters_doc("Writes an event file for TensorBoard into the folder.", logged).c_str());
  module.def(
      "learning_rate_scheduler",
      [](nb::callable rate) {
        return learning_rate_scheduler([rate = share(std::move(rate))](int epoch) {
          const nb::gil_scoped_acquire lock;
          return nb::cast<double>(object_of(rate)(epoch));
        });
      },
      "rate"_a, "At the start of each epoch, from 0, the learning rate becomes rate(epoch).");
}

}  // namespace

FitOfModel::FitOfModel(nb::object model) : model_(std::move(model)), before_(std::exchange(running_fit, this)) {}

FitOfModel::~FitOfModel() { running_fit = before_; }

nb::object FitOfModel::current() { return running_fit == nullptr ? nb::none() : nb::borrow(running_fit->model_); }

std::vector<Callback> callbacks_of(const nb::list& objects) {
  std::vector<Callback> callbacks;
  for (const nb::handle object : objects) callbacks.push_back(callback_of(object));
  return callbacks;
}

void bind_callbacks(nb::module_& module) {
  bind_reports(module);
  bind_control(module);
  nb::class_<Callback>(module, "ReadyCallback", "A callback that Headrace brings along.")
      .def_ro("name", &Callback::name)
      .def("__repr__", [](const Callback& callback) { return "ReadyCallback(" + callback.name + ")"; });
  bind_ready_made(module);
}

}  // namespace headrace::python
