// cache(): samples are kept as the stages before it leave them.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "headrace/cache/disk_cache.h"
#include "headrace/cache/memory_cache.h"
#include "headrace/devices/base/error.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/stages/option_stage.h"
#include "headrace/pipeline/plan/stages/stage_calls.h"

namespace headrace {
namespace {

constexpr const char* kCache = "cache";

struct CacheBudget {
  std::uint64_t budget_bytes = 0;

  void each_field(OptionVisitor& visit) {
    visit("budget_bytes", budget_bytes, "The maximum that it keeps, in bytes; 0: no limit.");
  }
};
struct CacheFolder {
  std::filesystem::path folder = {};
  DiskCacheOptions options = {};

  void each_field(OptionVisitor& visit) {
    visit("folder", folder, "Where it is kept.");
    visit("budget_bytes", options.budget_bytes, "The maximum that it keeps, in bytes; 0: no limit.");
    visit("segment_bytes", options.segment_bytes, "The size of each of its files.");
  }
};

class CacheStage final : public Stage {
 public:
  explicit CacheStage(std::shared_ptr<SampleCache> cache) : cache_(std::move(cache)) {}

  std::string describe() const override { return fmt::format("cache({})", cache_->describe()); }
  nlohmann::ordered_json to_json(const PlanParts& /*parts*/, const std::string& path) const override {
    const std::string at = path + "." + kCache;
    if (const auto* memory = dynamic_cast<const MemoryCache*>(cache_.get()))
      return {{kCache, plan_json::named_options(at, "memory", CacheBudget{memory->budget_bytes()})}};
    if (const auto* disk = dynamic_cast<const DiskCache*>(cache_.get())) {
      const CacheFolder folder{.folder = disk->folder(), .options = disk->options()};
      return {{kCache, plan_json::named_options(at, "disk", folder)}};
    }
    throw ConfigError(
        fmt::format("to_json(): {}: the cache {} is code, which JSON cannot hold", at, cache_->describe()),
        "use memory() or disk(folder)");
  }
  void plan_into(PlanBuilder& builder) const override {
    StreamPlan& plan = builder.plan();
    if (std::ranges::find(plan.caches, cache_, &PlannedCache::cache) != plan.caches.end()) {
      throw ConfigError("one cache stands at two places of a plan", "give each cache() a cache of its own");
    }
    builder.want_numbers("cache()");
    builder.want_before_mixing("cache()");
    builder.want_nothing_random("cache()");
    if (plan.renumbered) {
      throw ConfigError("cache() after enumerate() of shuffled or repeated records: their numbers change",
                        "put cache() before enumerate()");
    }
    plan.caches.push_back({.cache = cache_, .stages = plan.sample_stages.size()});
  }

 private:
  std::shared_ptr<SampleCache> cache_;
};

Dataset read_cache(const Dataset& before, const plan_json::JsonPlace& place, const PlanOptions& plan,
                   const plan_json::Members& /*members*/) {
  const std::string kind = place.only_name("a cache");
  if (kind == "memory") {
    const auto options = plan_json::read<CacheBudget>(place.member(kind), plan);
    return before.cache(memory(options.budget_bytes));
  }
  if (kind != "disk") {
    place.refuse(fmt::format("there is no cache {}", plan_json::in_quotes(kind)), "write memory or disk");
  }
  const auto folder = plan_json::read<CacheFolder>(place.member(kind), plan);
  return before.cache(disk(folder.folder, folder.options));
}

}  // namespace

std::shared_ptr<MemoryCache> memory(std::uint64_t budget_bytes) {
  return std::make_shared<MemoryCache>(budget_bytes);
}

std::shared_ptr<DiskCache> disk(const std::filesystem::path& folder, DiskCacheOptions options) {
  return std::make_shared<DiskCache>(folder, options);
}

Dataset Dataset::cache(std::shared_ptr<SampleCache> cache) const {
  if (cache == nullptr)
    throw ConfigError("cache() was given no cache", "write cache(memory()) or cache(disk(folder))");
  return Dataset(add_stage(plan_, std::make_shared<const CacheStage>(std::move(cache))));
}

StageCall cache_call() {
  return {.name = kCache,
          .options = {shown_options<CacheBudget>("cache: memory"), shown_options<CacheFolder>("cache: disk")},
          .read = read_cache};
}

}  // namespace headrace
