// Arrow's PyCapsule interface: tables of other libraries as datasets, batches as arrays of theirs.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "headrace/bindings/python/batch.h"
#include "headrace/bindings/python/callable.h"
#include "headrace/bindings/python/module.h"
#include "headrace/bindings/python/options.h"
#include "headrace/pipeline/arrow.h"
#include "headrace/pipeline/arrow_structs.h"
#include "headrace/pipeline/dataset.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {
namespace {

// Returns the stream in the capsule that obj.__arrow_c_stream__() gave. With the GIL.
ArrowArrayStream* stream_in(nb::handle capsule) {
  auto* stream = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule.ptr(), "arrow_array_stream"));
  if (stream == nullptr) throw nb::python_error();
  return stream;
}

ArrowOptions options_of(const nb::dict& given) {
  return read_options<ArrowOptions>(given, "headrace.from_arrow()");
}

Dataset table_of(nb::handle capsule, const nb::dict& given) {
  const ArrowOptions options = options_of(given);
  ArrowArrayStream* stream = stream_in(capsule);
  const WithoutGil others_run;
  return Dataset::from(arrow_table(stream, options));
}

// open() gives capsules.
Dataset stream_of(const PlanFunction& open, const nb::dict& given) {
  const ArrowOptions options = options_of(given);
  auto function = [open = PythonCallable(open)](ArrowArrayStream* stream) {
    open.call([&](nb::handle give) {
      const nb::object capsule = call_function(give);
      *stream = std::exchange(*stream_in(capsule), {});
    });
  };
  const WithoutGil others_run;
  return Dataset::from(arrow_stream(std::move(function), options));
}

// A capsule of a struct that is released with it, unless its consumer has taken over what it holds.
template <typename Struct>
nb::object arrow_capsule(std::unique_ptr<Struct> content, const char* name) {
  const auto release = [](PyObject* capsule) {
    auto* held = static_cast<Struct*>(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)));
    if (held->release != nullptr) held->release(held);
    delete held;
  };
  PyObject* capsule = PyCapsule_New(content.get(), name, release);
  if (capsule == nullptr) throw nb::python_error();
  static_cast<void>(content.release());
  return nb::steal(capsule);
}

// The numbers of a C-ordered NumPy array, which is not copied; or a list of texts.
ArrowTableColumn column_of(const std::string& name, nb::handle values, const std::vector<bool>& known) {
  ArrowTableColumn column{.name = name, .known = known};
  if (nb::isinstance<nb::list>(values)) {
    column.texts = nb::cast<std::vector<std::string>>(values);
    return column;
  }
  const nb::object dtype = values.attr("dtype"), shape = values.attr("shape");
  column.dtype = dtype_of(nb::cast<std::string>(nb::str(nb::handle(dtype))));
  const auto extents = nb::cast<std::vector<std::int64_t>>(shape);
  column.shape = Shape(std::span(extents).subspan(1));
  SharedBuffer buffer = share_buffer(values);
  column.data = buffer.bytes.data();
  column.owner = std::move(buffer.owner);
  return column;
}

using GivenColumn = std::tuple<std::string, nb::object, std::vector<bool>>;

nb::object stream_of_columns(const std::vector<GivenColumn>& given, std::int64_t rows) {
  std::vector<ArrowTableColumn> columns;
  for (const auto& [name, values, known] : given) columns.push_back(column_of(name, values, known));
  auto stream = std::make_unique<ArrowArrayStream>();
  export_arrow_table(std::move(columns), rows, stream.get());
  return arrow_capsule(std::move(stream), "arrow_array_stream");
}

}  // namespace

nb::tuple to_arrow(const PythonBatch& batch, nb::handle /*requested_schema*/) {
  auto schema = std::make_unique<ArrowSchema>();
  auto array = std::make_unique<ArrowArray>();
  {
    const WithoutGil others_run;
    export_arrow(batch.batch.shared(), schema.get(), array.get());
  }
  nb::object first = arrow_capsule(std::move(schema), "arrow_schema");
  return nb::make_tuple(std::move(first), arrow_capsule(std::move(array), "arrow_array"));
}

void bind_arrow(nb::module_& module) {
  module.def("arrow_table", &table_of, "capsule"_a, "options"_a);
  module.def("arrow_stream_of_columns", &stream_of_columns, "columns"_a, "rows"_a);
  module.def("arrow_stream", &stream_of, "open"_a, "options"_a);
}

}  // namespace headrace::python
