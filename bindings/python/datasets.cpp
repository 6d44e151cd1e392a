// Plans. headrace/_dataset.py gives them the signatures that users see.
#include "headrace/pipeline/dataset.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <utility>

#include "headrace/bindings/python/callable.h"
#include "headrace/bindings/python/module.h"
#include "headrace/bindings/python/names.h"
#include "headrace/devices/base/hash.h"
#include "headrace/devices/registry.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {
namespace {

// Calls function(list of the fields' arrays) -> bool. `fields` are those that it sees.
RecordFilter python_filter(nb::object function, const std::string& name, std::uint32_t version, bool processed,
                           const std::vector<FieldTuple>& tuples) {
  Fields fields = to_fields(tuples);
  RecordFilter filter{.name = name, .version = version, .keeps = {}, .processed = processed};
  filter.keeps = [function = PythonCallable(std::move(function)),
                  fields = std::move(fields)](const ExampleView& example) {
    return function.call([&](nb::handle keeps) {
      nb::list arrays;
      for (const Field& field : fields) {
        const Shape shape = field.encoding == Encoding::kImage ? Shape() : example.shape(field.name);
        arrays.append(array_of(example.bytes(field.name), field, shape));
      }
      return nb::cast<bool>(keeps(arrays));
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

std::vector<PadField> to_pad(const std::vector<std::tuple<std::string, std::int64_t, int>>& tuples) {
  std::vector<PadField> pad;
  for (const auto& [field, length, value] : tuples) {
    pad.push_back({.field = field, .length = length, .value = static_cast<std::byte>(value)});
  }
  return pad;
}

void bind_stages(nb::class_<Dataset>& dataset) {
  dataset
      .def(
          "decode",
          [](const Dataset& data, std::int64_t height, std::int64_t width, bool apply_orientation) {
            return data.decode({.height = height, .width = width, .apply_orientation = apply_orientation});
          },
          "height"_a, "width"_a, "apply_orientation"_a, Unlocked())
      .def("map", &Dataset::map, "operations"_a, Unlocked())
      .def(
          "shuffle",
          [](const Dataset& data, std::uint64_t seed, bool anew) {
            return data.shuffle({.seed = seed, .each_epoch_anew = anew});
          },
          "seed"_a, "each_epoch_anew"_a, Unlocked())
      .def(
          "shuffle_window",
          [](const Dataset& data, std::uint64_t size, std::uint64_t seed, bool anew) {
            return data.shuffle_window({.size = size, .seed = seed, .each_epoch_anew = anew});
          },
          "size"_a, "seed"_a, "each_epoch_anew"_a, Unlocked())
      .def("repeat", &Dataset::repeat, "times"_a, Unlocked())
      .def("take", &Dataset::take, "count"_a, Unlocked())
      .def("skip", &Dataset::skip, "count"_a, Unlocked())
      .def(
          "select",
          [](const Dataset& data,
             const nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& numbers) {
            return data.select({numbers.data(), numbers.data() + numbers.size()});
          },
          "numbers"_a)
      .def("shard", &Dataset::shard, "count"_a, "index"_a, Unlocked())
      .def("without_shard", &Dataset::without_shard, "count"_a, "index"_a, Unlocked())
      .def(
          "shard_for_worker",
          [](const Dataset& data, std::uint64_t count, std::uint64_t index, const std::string& by) {
            const auto how = choose<ShardBy>(
                "by", by, {{"auto", ShardBy::kAuto}, {"file", ShardBy::kFile}, {"element", ShardBy::kElement}});
            return data.shard_for_worker({.count = count, .index = index, .by = how});
          },
          "count"_a, "index"_a, "by"_a, Unlocked())
      .def(
          "filter_labels",
          [](const Dataset& data, std::vector<std::int64_t> labels) {
            return data.filter(with_labels(std::move(labels)));
          },
          "labels"_a, Unlocked())
      .def(
          "filter", [](const Dataset& data, const RecordFilter& filter) { return data.filter(filter); },
          "filter"_a)
      .def(
          "enumerate",
          [](const Dataset& data, const std::string& field) { return data.enumerate({.field = field}); },
          "field"_a, Unlocked())
      .def("cache", &Dataset::cache, "cache"_a, Unlocked())
      .def("unbatch", &Dataset::unbatch, Unlocked())
      .def(
          "window",
          [](const Dataset& data, std::uint64_t size, std::uint64_t shift, bool drop) {
            return data.window(
                {.size = size, .shift = shift, .remainder = drop ? Remainder::kDrop : Remainder::kKeep});
          },
          "size"_a, "shift"_a, "drop_remainder"_a, Unlocked())
      .def(
          "batch",
          [](const Dataset& data, std::int64_t size, bool drop) {
            return data.batch({.global = size, .remainder = drop ? Remainder::kDrop : Remainder::kKeep});
          },
          "size"_a, "drop_remainder"_a, Unlocked())
      .def(
          "padded_batch",
          [](const Dataset& data, std::int64_t size, bool drop,
             const std::vector<std::tuple<std::string, std::int64_t, int>>& pad) {
            return data.padded_batch(
                {.global = size, .remainder = drop ? Remainder::kDrop : Remainder::kKeep, .pad = to_pad(pad)});
          },
          "size"_a, "drop_remainder"_a, "pad"_a, Unlocked())
      .def(
          "bucket_by_length",
          [](const Dataset& data, const std::string& field, std::vector<std::int64_t> boundaries,
             std::vector<std::int64_t> sizes, std::int64_t max_length, bool drop,
             const std::vector<std::tuple<std::string, std::int64_t, int>>& pad) {
            return data.bucket_by_length({.field = field,
                                          .boundaries = std::move(boundaries),
                                          .batch_sizes = std::move(sizes),
                                          .max_length = max_length,
                                          .remainder = drop ? Remainder::kDrop : Remainder::kKeep,
                                          .pad = to_pad(pad)});
          },
          "field"_a, "boundaries"_a, "batch_sizes"_a, "max_length"_a, "drop_remainder"_a, "pad"_a, Unlocked())
      .def(
          "ragged_batch",
          [](const Dataset& data, std::int64_t size, bool drop,
             const std::vector<std::pair<std::string, std::int64_t>>& fields) {
            RaggedBatchOptions options{.global = size, .remainder = drop ? Remainder::kDrop : Remainder::kKeep};
            for (const auto& [field, max] : fields) options.fields.push_back({.field = field, .max_length = max});
            return data.ragged_batch(std::move(options));
          },
          "size"_a, "drop_remainder"_a, "fields"_a, Unlocked())
      .def("has_buckets", &Dataset::has_buckets, Unlocked())
      .def("is_ragged", &Dataset::is_ragged, Unlocked())
      .def("prefetch", &Dataset::prefetch, "batches"_a, Unlocked());
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
          "left_out", [](const Dataset& data) { return describe(data.left_out()); }, Unlocked())
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

void bind_combinations(nb::module_& module) {
  module.def("concatenate", &concatenate, "parts"_a, Unlocked());
  module.def(
      "interleave",
      [](const std::vector<Dataset>& parts, std::uint64_t block) { return interleave(parts, {.block = block}); },
      "parts"_a, "block"_a, Unlocked());
  module.def(
      "mix",
      [](const std::vector<Dataset>& parts, std::vector<double> weights, std::uint64_t seed,
         const std::string& until) {
        const auto end =
            choose<MixEnd>("until", until, {{"first_ends", MixEnd::kFirstEnds}, {"all_seen", MixEnd::kAllSeen}});
        return mix(parts, {.weights = std::move(weights), .seed = seed, .end = end});
      },
      "parts"_a, "weights"_a, "seed"_a, "until"_a, Unlocked());
  module.def(
      "zip",
      [](const std::vector<Dataset>& parts, std::vector<std::string> suffixes, bool strict) {
        return zip(parts, {.suffixes = std::move(suffixes), .strict = strict});
      },
      "parts"_a, "suffixes"_a, "strict"_a, Unlocked());
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
  bind_combinations(module);
}

}  // namespace headrace::python
