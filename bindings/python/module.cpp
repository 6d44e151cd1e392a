#include "headrace/bindings/python/module.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <tuple>

#include "headrace/devices/base/launcher.h"

namespace headrace::python {

DType dtype_of(std::string_view name) { return choose<DType>("dtype", name); }

FieldTuple to_tuple(const Field& field) {
  const auto extents = field.shape.extents();
  std::optional<std::string> layout;
  if (field.layout) layout = choice_names(*field.layout).at(static_cast<std::size_t>(*field.layout));
  return {field.name,
          to_string(field.dtype),
          {extents.begin(), extents.end()},
          field.encoding == Encoding::kImage,
          std::move(layout)};
}

Field to_field(const FieldTuple& tuple) {
  const auto& [name, dtype, extents, encoded, layout] = tuple;
  Field field{.name = name,
              .dtype = dtype_of(dtype),
              .shape = Shape(std::span<const std::int64_t>(extents)),
              .encoding = encoded ? Encoding::kImage : Encoding::kRaw};
  if (layout) field.layout = choose<ImageLayout>("layout", *layout);
  return field;
}

std::vector<FieldTuple> to_tuples(const Fields& fields) {
  std::vector<FieldTuple> tuples;
  for (const Field& field : fields) tuples.push_back(to_tuple(field));
  return tuples;
}

Fields to_fields(const std::vector<FieldTuple>& tuples) {
  Fields fields;
  for (const FieldTuple& tuple : tuples) fields.push_back(to_field(tuple));
  return fields;
}

namespace {

// (rank, workers, both in words); None for a value that the launcher does not give.
using PlaceTuple = std::tuple<std::optional<std::int64_t>, std::optional<std::int64_t>, std::string>;

std::optional<PlaceTuple> launched() {
  const std::optional<LaunchedProcess> process = launched_process(std::getenv);
  if (!process) return std::nullopt;
  return PlaceTuple(process->rank, process->workers, process->to_string());
}

}  // namespace

void bind_launcher(nanobind::module_& module) {
  module.def("launched_process", &launched,
             "What a launcher says of this process: rank, workers, text; None for a process that runs alone.");
}

}  // namespace headrace::python

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
  headrace::python::bind_saving(module);
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
