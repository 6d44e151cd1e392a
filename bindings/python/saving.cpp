// Records that are written: those of a dataset, or as they come.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "headrace/bindings/python/callable.h"
#include "headrace/bindings/python/module.h"
#include "headrace/bindings/python/options.h"
#include "headrace/pipeline/convert.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/shard_writer.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {
namespace {

std::map<std::string, std::uint64_t> counts_of(const ConvertResult& done) {
  return {{"records", done.records},
          {"bytes", done.bytes},
          {"shards", done.shards},
          {"kept_shards", done.kept_shards},
          {"bad_records", done.bad_records}};
}

}  // namespace

void bind_saving(nb::module_& module) {
  module.def(
      "convert",
      [](const Dataset& data, const std::string& to, const nb::dict& given) {
        const auto options = read_options<ConvertOptions>(given, "headrace.save_records()");
        const WithoutGil others_run;
        const SignalPoll poll;
        return counts_of(convert_dataset(data, to, options));
      },
      "data"_a, "to"_a, "options"_a);
  nb::class_<ShardWriter>(module, "ShardWriter")
      .def(
          "__init__",
          [](ShardWriter* self, const std::string& to, const std::vector<FieldTuple>& fields,
             std::vector<std::string> classes, const nb::dict& given) {
            const auto options = read_options<ConvertOptions>(given, "headrace.ShardWriter()");
            const WithoutGil others_run;
            new (self) ShardWriter(to, to_fields(fields), std::move(classes), options);
          },
          "to"_a, "fields"_a, "classes"_a, "options"_a)
      .def(
          "append",
          [](ShardWriter& self, const nb::object& packed) {
            const WithoutGil others_run;
            const SignalPoll poll;
            self.append([&](RecordWriter& record) {
              const nb::gil_scoped_acquire gil;
              put(packed, record);
            });
          },
          "packed"_a)
      .def("finish", [](ShardWriter& self) {
        const WithoutGil others_run;
        const SignalPoll poll;
        return counts_of(self.finish());
      });
}

}  // namespace headrace::python
