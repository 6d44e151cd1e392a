// Devices, workers, and loaders with their statistics and digests.
#include "headrace/pipeline/loader.h"

#include <limits>

#include "headrace/bindings/c/library/handles.h"
#include "headrace/devices/registry.h"
#include "headrace/devices/workers.h"
#include "headrace/pipeline/digest.h"
#include "headrace/pipeline/option_json.h"
#include "headrace/pipeline/stats.h"

namespace headrace::c {
namespace {

LoaderOptions loader_options_of(const char* json, const hr_loader_calls& calls, std::shared_ptr<void> user,
                                int devices) {
  auto options = options_from_json<LoaderOptions>(text_of(json), "options of a loader");
  options.errors.tally = share(calls.tally);
  if (calls.while_waiting != nullptr) {
    options.while_waiting = [call = calls.while_waiting, user = std::move(user)] {
      call_back("while_waiting", [&] { return call(user.get()); });
    };
  }
  if (calls.worker != nullptr) {
    if (options.world != World())
      throw ConfigError("hr_loader_open: the worker says which replicas are served, and so do the options",
                        "leave out world_replicas and world_first");
    const auto worker = HR_READ(hr_worker, HR_WORKER_INIT, calls.worker);
    options.world = {.total = worker.workers * devices, .first = worker.rank * devices};
  }
  return options;
}

Json counts_of(const LoaderStats& stats) {
  return {{"elapsed_ns", stats.elapsed_ns},
          {"batches", stats.batches},
          {"examples", stats.examples},
          {"bytes", stats.bytes},
          {"consumer_wait_ns", stats.consumer_wait_ns},
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
          {"device_decoded", stats.device_decoded},
          {"kept_bytes", stats.kept_bytes},
          {"cache_hits", stats.cache.hits},
          {"cache_misses", stats.cache.misses},
          {"cache_records", stats.cache.records},
          {"cache_bytes", stats.cache.bytes},
          {"cache_refused", stats.cache.refused},
          {"cache_bad", stats.cache.bad},
          {"cache_trouble", stats.cache_trouble},
          {"bad_records", stats.bad_records},
          {"warned_records", stats.warned_records},
          {"oriented_images", stats.oriented_images},
          {"read_retries", stats.read_retries},
          {"summary", stats.summary()}};
}

Json stage_of(const StageStats& stage, std::uint64_t elapsed_ns) {
  return {{"name", stage.name},
          {"kind", to_string(stage.kind)},
          {"threads", stage.threads},
          {"items", stage.items},
          {"ns_per_item", stage.ns_per_item()},
          {"occupancy", stage.occupancy(elapsed_ns)},
          {"wait_p50_ns", stage.waits.quantile_ns(0.50)},
          {"wait_p99_ns", stage.waits.quantile_ns(0.99)}};
}

Json verdict_of(const Verdict& verdict) {
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

Json stats_of(const Loader& loader) {
  const LoaderStats stats = loader.stats();
  Json json = counts_of(stats);
  json["stages"] = Json::array();
  for (const StageStats& stage : stats.stages) json["stages"].push_back(stage_of(stage, stats.elapsed_ns));
  json["choices"] = Json::array();
  for (const Choice& choice : loader.choices()) {
    json["choices"].push_back({{"what", choice.what}, {"value", choice.value}, {"reason", choice.reason}});
  }
  json["verdict"] = verdict_of(judge(stats));
  return json;
}

Json digest_of(hr_loader& from, std::uint64_t max_batches) {
  if (max_batches == 0) max_batches = std::numeric_limits<std::uint64_t>::max();
  StreamDigest digest(*from.devices);
  Json batches = Json::array();
  bool end = false;
  while (!end && batches.size() < max_batches) {
    const std::optional<BatchDigest> next = digest.next(from.loader);
    end = !next;
    if (next) {
      batches.push_back(
          {{"epoch", next->epoch}, {"step", next->step}, {"examples", next->examples}, {"sha256", next->sha256}});
    }
  }
  Json json{{"batches", std::move(batches)}, {"sha256", nullptr}, {"end", end}};
  if (from.loader.in_order()) json["sha256"] = digest.finish();
  return json;
}

}  // namespace
}  // namespace headrace::c

using headrace::c::give_text;
using headrace::c::given;
using headrace::c::guarded;

uint32_t hr_abi_version(void) { return HR_ABI_VERSION; }

const char* hr_version(void) { return HEADRACE_VERSION; }

hr_status hr_devices_open(const char* spec, hr_devices** devices) {
  return guarded(__func__, [&] {
    const std::string named = &given(spec, "spec");
    auto& result = given(devices, "devices");
    auto group =
        std::make_shared<headrace::DeviceGroup>(headrace::open_devices(named, headrace::DeviceNeed::kMemory));
    result = new hr_devices{std::move(group)};
  });
}

hr_status hr_devices_count(const hr_devices* devices, int32_t* count) {
  return guarded(__func__, [&] { given(count, "count") = given(devices, "devices").group->size(); });
}

hr_status hr_devices_name(const hr_devices* devices, int32_t replica, const char** name) {
  return guarded(__func__, [&] {
    const headrace::DeviceGroup& group = *given(devices, "devices").group;
    headrace::c::check_index(static_cast<std::size_t>(replica), static_cast<std::size_t>(group.size()), "device");
    given(name, "name") = group[replica].info().name.c_str();
  });
}

void hr_devices_free(hr_devices* devices) { delete devices; }

hr_status hr_worker_describe(hr_worker* worker) {
  return guarded(__func__, [&] {
    const headrace::WorkerPlan plan = headrace::place_worker();
    const hr_worker answer = {.size = sizeof(hr_worker),
                              .rank = plan.rank,
                              .workers = plan.workers,
                              .local_rank = plan.local_rank,
                              .local_workers = plan.local_workers};
    headrace::c::write_struct(worker, answer, "hr_worker", "HR_WORKER_INIT");
  });
}

hr_status hr_loader_open(const hr_dataset* dataset, const hr_devices* devices, const char* options,
                         const hr_loader_calls* calls, hr_loader** loader) {
  return guarded(__func__, [&] {
    const auto how = HR_READ(hr_loader_calls, HR_LOADER_CALLS_INIT, calls);
    std::shared_ptr<void> user = headrace::c::share(how.user);
    hr_loader*& result = given(loader, "loader");
    const headrace::Dataset& plan = given(dataset, "dataset").plan;
    const std::shared_ptr<headrace::DeviceGroup>& group = given(devices, "devices").group;
    auto read = headrace::c::loader_options_of(options, how, std::move(user), group->size());
    result = new hr_loader{.devices = group, .loader = headrace::Loader(plan, *group, std::move(read))};
  });
}

hr_status hr_loader_next(hr_loader* loader, int32_t replica, hr_batch** batch) {
  return guarded(__func__, [&] {
    hr_batch*& result = given(batch, "batch");
    hr_loader& from = given(loader, "loader");
    std::optional<headrace::Batch> next = from.loader.next(replica);
    result = next ? new hr_batch{headrace::SharedBatch(std::move(*next), from.devices)} : nullptr;
  });
}

hr_status hr_loader_stop(hr_loader* loader) {
  return guarded(__func__, [&] { given(loader, "loader").loader.stop(); });
}

void hr_loader_free(hr_loader* loader) { delete loader; }

hr_status hr_loader_describe(const hr_loader* loader, hr_loader_info* info) {
  return guarded(__func__, [&] {
    const hr_loader& of = given(loader, "loader");
    hr_loader_info answer = HR_LOADER_INFO_INIT;
    answer.local_rows = of.loader.local_rows();
    answer.steps_per_epoch = of.loader.knows_steps() ? of.loader.steps_per_epoch() : HR_UNKNOWN;
    answer.replicas = of.devices->size();
    answer.threads = of.loader.threads();
    answer.tuned = of.loader.tuned();
    headrace::c::write_struct(info, answer, "hr_loader_info", "HR_LOADER_INFO_INIT");
  });
}

hr_status hr_loader_state(const hr_loader* loader, char** text) {
  return give_text(__func__, text, "text", [&] { return given(loader, "loader").loader.state().serialize(); });
}

hr_status hr_loader_trace(const hr_loader* loader, char** json) {
  return give_text(__func__, json, "json", [&] { return given(loader, "loader").loader.trace_json(); });
}

hr_status hr_loader_stats(const hr_loader* loader, char** json) {
  return give_text(__func__, json, "json", [&] { return headrace::c::stats_of(given(loader, "loader").loader); });
}

hr_status hr_loader_digest(hr_loader* loader, uint64_t max_batches, char** json) {
  return give_text(__func__, json, "json",
                   [&] { return headrace::c::digest_of(given(loader, "loader"), max_batches); });
}
