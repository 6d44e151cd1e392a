#include "headrace/bindings/python/module.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "headrace/pipeline/stats.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {
namespace {

nb::dict to_dict(const StageStats& stage, std::uint64_t elapsed_ns) {
  nb::dict dict;
  dict["name"] = stage.name;
  dict["kind"] = to_string(stage.kind);
  dict["threads"] = stage.threads;
  dict["items"] = stage.items;
  dict["busy_ns"] = stage.busy_ns;
  dict["wait_ns"] = stage.wait_ns;
  dict["ns_per_item"] = stage.ns_per_item();
  dict["occupancy"] = stage.occupancy(elapsed_ns);
  dict["wait_p50_us"] = stage.waits.quantile_ns(0.50) * 1e-3;
  dict["wait_p99_us"] = stage.waits.quantile_ns(0.99) * 1e-3;
  return dict;
}

nb::dict to_dict(const CacheCounters& cache) {
  nb::dict dict;
  dict["hits"] = cache.hits;
  dict["misses"] = cache.misses;
  dict["records"] = cache.records;
  dict["bytes"] = cache.bytes;
  dict["refused"] = cache.refused;
  dict["bad"] = cache.bad;
  return dict;
}

nb::dict to_dict(const LoaderStats& stats) {
  nb::dict dict;
  dict["elapsed_ns"] = stats.elapsed_ns;
  dict["batches"] = stats.batches;
  dict["examples"] = stats.examples;
  dict["bytes"] = stats.bytes;
  dict["examples_per_second"] = stats.examples_per_second();
  dict["consumer_wait_ns"] = stats.consumer_wait_ns;
  dict["read_ns"] = stats.read_ns;
  dict["decode_ns"] = stats.decode_ns;
  dict["operate_ns"] = stats.operate_ns;
  dict["first_batch_ns"] = stats.first_batch_ns;
  dict["ready_batches"] = stats.ready_batches;
  dict["ready_share"] = stats.ready_share;
  dict["asked"] = stats.asked;
  dict["slots"] = stats.slots;
  dict["memory_bytes"] = stats.memory_bytes;
  dict["pinned_bytes"] = stats.pinned_bytes;
  dict["kept_records"] = stats.kept_records;
  dict["device_decoded"] = stats.device_decoded;
  dict["kept_bytes"] = stats.kept_bytes;
  dict["bad_records"] = stats.bad_records;
  dict["warned_records"] = stats.warned_records;
  dict["oriented_images"] = stats.oriented_images;
  dict["read_retries"] = stats.read_retries;
  dict["cache"] = to_dict(stats.cache);
  nb::list stages;
  for (const StageStats& stage : stats.stages) stages.append(to_dict(stage, stats.elapsed_ns));
  dict["stages"] = stages;
  dict["summary"] = stats.summary();
  return dict;
}

// The verdict in words: what bounds the plan, and what would change it.
std::vector<std::string> judged(const LoaderStats& interval) {
  const Verdict verdict = judge(interval);
  std::vector<std::string> lines{verdict.sentence()};
  for (const WhatIf& what_if : verdict.what_ifs) lines.push_back("  " + verdict.sentence(what_if));
  return lines;
}

}  // namespace

void bind_stats(nb::module_& module) {
  nb::class_<LoaderStats>(module, "LoaderStats")
      .def("since", &LoaderStats::since, "earlier"_a)
      .def("to_dict", [](const LoaderStats& stats) { return to_dict(stats); })
      .def("judged", &judged);
}

}  // namespace headrace::python
