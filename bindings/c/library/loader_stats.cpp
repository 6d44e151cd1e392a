// A loader's statistics, as a struct and as JSON.
#include <nlohmann/json.hpp>

#include "headrace/bindings/c/library/handles.h"
#include "headrace/bindings/c/library/structs.h"
#include "headrace/pipeline/stats.h"

namespace headrace::c {
namespace {

using Json = nlohmann::ordered_json;

hr_stats stats_of(const LoaderStats& stats) {
  return {.size = sizeof(hr_stats),
          .elapsed_ns = stats.elapsed_ns,
          .batches = stats.batches,
          .examples = stats.examples,
          .bytes = stats.bytes,
          .stall_ns = stats.consumer_wait_ns,
          .read_ns = stats.read_ns,
          .decode_ns = stats.decode_ns,
          .operate_ns = stats.operate_ns,
          .first_batch_ns = stats.first_batch_ns,
          .ready_batches = stats.ready_batches,
          .ready_share = stats.ready_share,
          .slots = static_cast<std::uint64_t>(stats.slots),
          .memory_bytes = stats.memory_bytes,
          .pinned_bytes = stats.pinned_bytes,
          .kept_records = stats.kept_records,
          .kept_bytes = stats.kept_bytes,
          .cache_hits = stats.cache.hits,
          .cache_misses = stats.cache.misses,
          .cache_records = stats.cache.records,
          .cache_bytes = stats.cache.bytes,
          .bad_records = stats.bad_records,
          .warned_records = stats.warned_records,
          .oriented_images = stats.oriented_images,
          .read_retries = stats.read_retries};
}

Json json_of(const hr_stats& stats) {
  return {{"elapsed_ns", stats.elapsed_ns},
          {"batches", stats.batches},
          {"examples", stats.examples},
          {"bytes", stats.bytes},
          {"stall_ns", stats.stall_ns},
          {"read_ns", stats.read_ns},
          {"decode_ns", stats.decode_ns},
          {"operate_ns", stats.operate_ns},
          {"first_batch_ns", stats.first_batch_ns},
          {"ready_batches", stats.ready_batches},
          {"ready_share", stats.ready_share},
          {"slots", stats.slots},
          {"memory_bytes", stats.memory_bytes},
          {"pinned_bytes", stats.pinned_bytes},
          {"kept_records", stats.kept_records},
          {"kept_bytes", stats.kept_bytes},
          {"cache_hits", stats.cache_hits},
          {"cache_misses", stats.cache_misses},
          {"cache_records", stats.cache_records},
          {"cache_bytes", stats.cache_bytes},
          {"bad_records", stats.bad_records},
          {"warned_records", stats.warned_records},
          {"oriented_images", stats.oriented_images},
          {"read_retries", stats.read_retries}};
}

Json json_of(const StageStats& stage, std::uint64_t elapsed_ns) {
  return {{"name", stage.name},
          {"kind", to_string(stage.kind)},
          {"threads", stage.threads},
          {"items", stage.items},
          {"ns_per_item", stage.ns_per_item()},
          {"occupancy", stage.occupancy(elapsed_ns)},
          {"wait_p50_ns", stage.waits.quantile_ns(0.50)},
          {"wait_p99_ns", stage.waits.quantile_ns(0.99)}};
}

Json json_of(const Verdict& verdict) {
  Json what_ifs = Json::array();
  for (const WhatIf& what_if : verdict.what_ifs) {
    what_ifs.push_back({{"what", what_if.what},
                        {"images_per_second", what_if.images_per_second},
                        {"bottleneck", what_if.bottleneck},
                        {"sentence", verdict.sentence(what_if)}});
  }
  return {{"bottleneck", verdict.bottleneck},
          {"kind", verdict.kind},
          {"ceiling_images_per_second", verdict.ceiling_images_per_second},
          {"measured_images_per_second", verdict.measured_images_per_second},
          {"sentence", verdict.bottleneck.empty() ? "" : verdict.sentence()},
          {"what_ifs", std::move(what_ifs)}};
}

std::string stats_json(const Loader& loader) {
  const LoaderStats stats = loader.stats();
  Json json = json_of(stats_of(stats));
  json["summary"] = stats.summary();
  json["stages"] = Json::array();
  for (const StageStats& stage : stats.stages) json["stages"].push_back(json_of(stage, stats.elapsed_ns));
  json["choices"] = Json::array();
  for (const Choice& choice : loader.choices()) {
    json["choices"].push_back({{"what", choice.what}, {"value", choice.value}, {"reason", choice.reason}});
  }
  json["verdict"] = json_of(judge(stats));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);  // names of records need not be UTF-8
}

}  // namespace
}  // namespace headrace::c

using headrace::c::given;
using headrace::c::guarded;

hr_status hr_loader_stats(const hr_loader* loader, hr_stats* stats) {
  return guarded(__func__, [&] {
    headrace::c::write_struct(stats, headrace::c::stats_of(given(loader, "loader").loader.stats()), "hr_stats",
                              "HR_STATS_INIT");
  });
}

hr_status hr_loader_stats_json(const hr_loader* loader, char** json) {
  return guarded(__func__, [&] {
    char*& result = given(json, "json");
    result = headrace::c::owned_text(headrace::c::stats_json(given(loader, "loader").loader));
  });
}
