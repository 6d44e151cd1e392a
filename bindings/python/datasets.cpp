// Plans. headrace/_dataset.py gives them the signatures that users see.
#include "headrace/pipeline/dataset.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <utility>

#include "headrace/bindings/python/callable.h"
#include "headrace/bindings/python/module.h"
#include "headrace/bindings/python/options.h"
#include "headrace/devices/base/hash.h"
#include "headrace/devices/registry.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {
namespace {

// Calls function(list of the fields' arrays) -> bool. `fields` are those that it sees.
RecordFilter python_filter(const PlanFunction& function, const std::string& name, std::uint32_t version,
                           bool processed, const std::vector<FieldTuple>& tuples) {
  Fields fields = to_fields(tuples);
  RecordFilter filter{.name = name, .version = version, .keeps = {}, .processed = processed};
  filter.keeps = [function = PythonCallable(function), fields = std::move(fields)](const ExampleView& example) {
    return function.call([&](nb::handle keeps) {
      nb::list arrays;
      for (const Field& field : fields) {
        const Shape shape = field.encoding == Encoding::kImage ? Shape() : example.shape(field.name);
        arrays.append(array_of(example.bytes(field.name), field, shape));
      }
      return nb::cast<bool>(call_function(keeps, arrays));
    });
  };
  return filter;
}

DeviceGroup devices_for(const std::optional<std::string>& spec) {
  return open_devices(*spec, DeviceNeed::kMemory);
}

// Nothing before batch(), where what is wrong with the plan is not asked for either.
std::optional<std::int64_t> batch_size(const Dataset& data) {
  try {
    return data.global_batch();
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

void bind_stages(nb::class_<Dataset>& dataset) {
  dataset
      .def(
          "stage",
          [](const Dataset& data, std::string_view name, std::string_view options) {
            return data.with_stage(name, options);
          },
          "name"_a, "options"_a, Unlocked())
      .def("map", &Dataset::map, "operations"_a, Unlocked())
      .def(
          "select",
          [](const Dataset& data,
             const nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& numbers) {
            return data.select({numbers.data(), numbers.data() + numbers.size()});
          },
          "numbers"_a)
      .def(
          "filter", [](const Dataset& data, const RecordFilter& filter) { return data.filter(filter); },
          "filter"_a)
      .def("cache", &Dataset::cache, "cache"_a, Unlocked())
      .def("has_buckets", &Dataset::has_buckets, Unlocked())
      .def("is_ragged", &Dataset::is_ragged, Unlocked());
}

void bind_questions(nb::class_<Dataset>& dataset) {
  dataset
      .def(
          "explain",
          [](const Dataset& data, const std::optional<std::string>& devices) {
            if (!devices) return data.explain();
            return data.explain(devices_for(devices), ConvertAt::kAuto);
          },
          "devices"_a, Unlocked())
      .def("streamed", &Dataset::streamed, Unlocked())
      .def("one_pass", &Dataset::one_pass, Unlocked())
      .def("size", &Dataset::size, Unlocked())
      .def("steps_per_epoch", &Dataset::steps_per_epoch, Unlocked())
      .def("batch_size", &batch_size, Unlocked())
      .def(
          "to_json", [](const Dataset& data, const PlanParts& parts) { return data.to_json(parts); }, "parts"_a,
          Unlocked())
      .def("evaluation_json", &Dataset::evaluation_json, Unlocked())
      .def_static(
          "from_json",
          [](const std::string& text, const std::string& base, bool allow_paths, const PlanParts& parts) {
            return Dataset::from_json(text, {.parts = parts, .base = base, .allow_paths = allow_paths});
          },
          "text"_a, "base"_a, "allow_paths"_a, "parts"_a, Unlocked())
      .def(
          "fields", [](const Dataset& data) { return to_tuples(data.fields()); }, Unlocked())
      .def("classes", &Dataset::classes, Unlocked())
      .def(
          "reading", [](const Dataset& data) { return data.reading(); }, Unlocked())
      .def(
          "columns",
          [](const Dataset& data) {
            std::vector<std::tuple<std::string, std::string, std::string>> columns;
            for (const SourceColumn& one : data.columns()) columns.emplace_back(one.name, one.holds, one.field);
            return columns;
          },
          Unlocked())
      .def(
          "fingerprint", [](const Dataset& data) { return to_hex(data.fingerprint()); }, Unlocked());
}

// The code of a plan, for its JSON.
void bind_parts(nb::module_& module) {
  nb::class_<PlanParts>(module, "PlanParts")
      .def(nb::init<>())
      .def(
          "add_operations",
          [](PlanParts& parts, const Operations& operations) { parts.operations.push_back(operations); },
          "operations"_a)
      .def(
          "add_filter", [](PlanParts& parts, const RecordFilter& filter) { parts.filters.push_back(filter); },
          "filter"_a)
      .def(
          "add_source",
          [](PlanParts& parts, const std::string& name, const Dataset& data) {
            parts.sources[name] = data.source();
          },
          "name"_a, "data"_a);
}

}  // namespace

void bind_datasets(nb::module_& module) {
  nb::class_<SampleCache>(module, "SampleCache")
      .def("counters",
           [](const SampleCache& cache) {
             const CacheCounters counters = cache.counters();
             nb::dict dict;
             dict["hits"] = counters.hits;
             dict["misses"] = counters.misses;
             dict["records"] = counters.records;
             dict["bytes"] = counters.bytes;
             dict["refused"] = counters.refused;
             dict["bad"] = counters.bad;
             return dict;
           })
      .def("describe", &SampleCache::describe)
      .def("trouble", &SampleCache::trouble);
  module.def(
      "memory_cache", [](std::uint64_t budget) -> std::shared_ptr<SampleCache> { return memory(budget); },
      "budget_bytes"_a);
  module.def(
      "disk_cache",
      [](const std::string& folder, std::uint64_t budget) -> std::shared_ptr<SampleCache> {
        return disk(folder, {.budget_bytes = budget});
      },
      "folder"_a, "budget_bytes"_a, Unlocked());
  nb::class_<RecordFilter>(module, "RecordFilter");
  module.def("python_filter", &python_filter, "function"_a, "name"_a, "version"_a, "processed"_a, "fields"_a);
  nb::class_<Dataset> dataset(module, "Dataset");
  bind_parts(module);
  bind_stages(dataset);
  bind_questions(dataset);
  module.def(
      "combine",
      [](const std::string& how, const std::vector<Dataset>& parts, const std::string& options) {
        return combine(how, parts, options);
      },
      "how"_a, "parts"_a, "options"_a, Unlocked());
}

}  // namespace headrace::python
