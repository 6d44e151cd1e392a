#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "headrace/bindings/python/callable.h"
#include "headrace/bindings/python/module.h"
#include "headrace/bindings/python/train/arrays.h"
#include "headrace/bindings/python/train/bindings.h"
#include "headrace/bindings/python/train/python_model.h"
#include "headrace/bindings/python/train/python_node.h"
#include "headrace/train/checkpoints.h"

namespace headrace::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

using FloatArray = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;

std::shared_ptr<PythonModel> build(const StrategyPtr& strategy, nb::object net, std::uint64_t seed,
                                   const std::optional<Dataset>& data) {
  const Net made = net_of_python(std::move(net), strategy->get().devices());
  const WithoutGil others_run;
  const Fields fields = data ? data->fields() : Fields{};
  return std::make_shared<PythonModel>(strategy, strategy->get().build(made, {.seed = seed, .fields = fields}));
}

void compile(PythonModel& model, const Optimizer& optimizer, const Loss& loss, const std::vector<Metric>& metrics,
             const std::string& precision) {
  const WithoutGil others_run;
  const PythonModel::Use use = model.use();
  model.note_compile();
  use->compile({.optimizer = optimizer,
                .loss = loss,
                .metrics = metrics,
                .precision = choose<Precision>("precision", precision,
                                               {{"float32", Precision::kF32}, {"bfloat16", Precision::kBF16}})});
}

void write_variable(PythonModel& model, const std::string& name, const FloatArray& values) {
  const std::span<const float> given(values.data(), values.size());
  const WithoutGil others_run;
  model.use()->write_variable(name, given);
}

nb::object read_variable(PythonModel& model, const std::string& name, int replica) {
  const PythonModel::Use use = model.use();
  const std::vector<std::string> own = use->variable_names();
  std::vector<float> values;
  {
    const WithoutGil others_run;
    values = use->read_variable(name, replica);
  }
  if (std::ranges::find(own, name) == own.end()) return array_of(std::move(values));  // the optimizer's
  return array_of(std::move(values), use->variable_shape(name));
}

std::optional<std::filesystem::path> newest_readable(const std::filesystem::path& folder) {
  std::vector<UnreadableCheckpoint> unreadable;
  const auto newest = newest_checkpoint(folder, &unreadable);
  for (const UnreadableCheckpoint& each : unreadable) {
    const std::string text = "passing over a checkpoint: " + each.why;
    if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 2) != 0) throw nb::python_error();  // warnings are errors
  }
  return newest;
}

nb::dict groups_of(PythonModel& model) {
  nb::dict groups;
  for (const GroupMembers& group : model.use()->parameter_groups()) {
    groups[group.rule.c_str()] = nb::cast(group.variables);
  }
  return groups;
}

void bind_strategy(nb::module_& module) {
  nb::class_<PythonStrategy> strategy(
      module, "Strategy", "Synchronous training with one mirrored copy of every variable on each device.");
  strategy
      .def(nb::init<const std::string&, WorkersPtr, bool>(), "devices"_a = "auto", nb::kw_only(),
           "workers"_a = nb::none(), "standalone"_a = false, nb::call_guard<WithoutGil>())
      .def("build", &build, "net"_a, nb::kw_only(), "seed"_a = 0, "data"_a = nb::none(),
           "Builds the net, a function of a Graph or a name of net_names(), and gives every replica the same "
           "initial "
           "variables. `data` tells the shapes of inputs that have none.")
      .def_prop_ro("local_replicas", [](PythonStrategy& self) { return self.get().local_replicas(); })
      .def_prop_ro("world_replicas", [](PythonStrategy& self) { return self.get().world_replicas(); })
      .def_prop_ro("first_replica", [](PythonStrategy& self) { return self.get().first_replica(); })
      .def_prop_ro("workers", &PythonStrategy::workers,
                   nb::for_getter(nb::sig("def workers(self, /) -> headrace._native.Workers | None")))
      .def_prop_ro("is_chief", [](PythonStrategy& self) { return self.get().is_chief(); })
      .def("__str__", [](PythonStrategy& self) { return self.get().to_string(); });
  bind_strategy_calls(strategy);
}

void bind_variables(nb::class_<PythonModel>& model) {
  model.def_prop_ro("variable_names", [](PythonModel& self) { return self.use()->variable_names(); })
      .def_prop_ro("optimizer_variable_names",
                   [](PythonModel& self) { return self.use()->optimizer_variable_names(); })
      .def(
          "variable_shape",
          [](PythonModel& self, const std::string& name) { return tuple_of(self.use()->variable_shape(name)); },
          "name"_a)
      .def("read_variable", &read_variable, "name"_a, nb::kw_only(), "replica"_a = 0,
           "One replica's copy of a variable, or of the optimizer's, as a float32 array.")
      .def("write_variable", &write_variable, "name"_a, "values"_a, "Sets every replica's copy.")
      .def(
          "copy_variables",
          [](PythonModel& self, PythonModel& from, const std::string& pattern) {
            return self.use()->copy_variables(*from.use(), pattern);
          },
          nb::call_guard<WithoutGil>(), "source"_a, "pattern"_a = "*",
          "Of all variables that both models have; gives their names.")
      .def(
          "freeze", [](PythonModel& self, const std::string& pattern) { return self.use()->freeze(pattern); },
          "pattern"_a, "From the next compile() on these variables stay as they are; gives their names.")
      .def(
          "unfreeze", [](PythonModel& self, const std::string& pattern) { return self.use()->unfreeze(pattern); },
          "pattern"_a)
      .def_prop_ro("frozen_variables", [](PythonModel& self) { return self.use()->frozen_variables(); })
      .def_prop_ro("parameter_groups", &groups_of, "By rule, the variables that the optimizer updates with it.");
}

nb::dict dict_of_pretrained(const PretrainedReport& report) {
  nb::dict found;
  found["loaded"] = report.loaded;
  found["left_out"] = report.left_out;
  found["unused"] = report.unused;
  return found;
}

PretrainedReport loaded_from(PythonModel& model, const std::filesystem::path& file,
                             const PretrainedOptions& options = {}) {
  const WithoutGil others_run;
  return load_pretrained(*model.use(), file, options);
}

// `rename`: a function of a tensor's name, or None.
nb::dict load_named(PythonModel& model, const std::filesystem::path& file, const nb::object& rename, bool strict) {
  PretrainedOptions options{.match = strict ? PretrainedMatch::kAll : PretrainedMatch::kAny};
  if (!rename.is_none()) {
    options.rename = [&](const std::string& name) {
      const nb::gil_scoped_acquire lock;
      return nb::cast<std::string>(rename(name));
    };
  }
  return dict_of_pretrained(loaded_from(model, file, options));
}

void bind_files(nb::module_& module, nb::class_<PythonModel>& model) {
  model
      .def(
          "save",
          [](PythonModel& self, const std::filesystem::path& file, const std::optional<Dataset>& input) {
            save_model(*self.use(), file, input);
          },
          nb::call_guard<WithoutGil>(), "file"_a, "input"_a.none(),
          "The model as it is now, in a .safetensors file that restore_model() reads.")
      .def("load_weights", &load_named, "file"_a, "rename"_a.none(), "strict"_a)
      .def(
          "load_pretrained",
          [](PythonModel& self, const std::filesystem::path& file) {
            return dict_of_pretrained(loaded_from(self, file));
          },
          "file"_a, "Weights that another program trained, by the names of variables or of PyTorch's modules.");
  module.def(
      "restore_model",
      [](const StrategyPtr& strategy, const std::filesystem::path& file, const nb::dict& own) {
        const CustomParts parts = custom_parts_of(own, strategy->get().devices());
        const WithoutGil others_run;
        return std::make_shared<PythonModel>(strategy, restore_model(strategy->get(), file, parts));
      },
      "strategy"_a, "file"_a, "own"_a,
      "The model as it was saved: its net, variables, compile options and optimizer.");
  module.def("newest_checkpoint", &newest_readable, "folder"_a,
             "None where there is none. Damaged ones are passed over with a warning; a DataError where all are.");
}

void bind_model(nb::module_& module) {
  nb::class_<PythonModel> model(module, "Model", "A net with its variables mirrored on every replica.");
  model.def("compile", &compile, nb::kw_only(), "optimizer"_a, "loss"_a, "metrics"_a, "precision"_a = "float32")
      .def("to_json", [](PythonModel& self) { return to_json(self.use()->graph()); })
      .def("summary", [](PythonModel& self) { return self.use()->summary(); })
      .def_prop_ro(
          "tasks",
          [](PythonModel& self) {
            nb::dict tasks;
            for (const OutputTask& of : self.use()->tasks()) {
              tasks[of.layer.c_str()] = of.task ? nb::cast(to_text(*of.task)) : nb::none();
            }
            return tasks;
          },
          nb::for_getter(nb::sig("def tasks(self, /) -> dict[str, str | None]")))
      .def_prop_ro("parameter_count", [](PythonModel& self) { return self.use()->parameter_count(); })
      .def_prop_ro("global_step", [](PythonModel& self) { return self.use()->global_step(); })
      .def(
          "weights_sha256", [](PythonModel& self) { return self.use()->weights_sha256(); },
          nb::call_guard<WithoutGil>())
      .def(
          "check_mirrored", [](PythonModel& self) { self.use()->check_mirrored(); }, nb::call_guard<WithoutGil>(),
          "DeviceError where the replicas' copies differ.")
      .def_prop_ro("strategy", [](const PythonModel& self) { return self.strategy(); });
  bind_variables(model);
  bind_runs(model);
  bind_files(module, model);
}

}  // namespace

void bind_models(nb::module_& module) {
  bind_strategy(module);
  bind_model(module);
}

}  // namespace headrace::python
