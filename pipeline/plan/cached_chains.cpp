#include "headrace/pipeline/plan/cached_chains.h"

#include <algorithm>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/hash.h"
#include "headrace/devices/base/rng.h"
#include "headrace/pipeline/plan/cached_sample.h"
#include "headrace/pipeline/plan/content_sample.h"

namespace headrace {
namespace {

// Differs for files that are alike in names, sizes and times. What lies on a disk was perhaps made of files that
// are gone: their content tells. What lies in memory is of files that this process opened: their path does,
// unread.
std::uint64_t tell_apart(const Source& source, bool resident_cache) {
  if (!resident_cache) return sample_content(source).value_or(0);
  return source.info().revision || lacks_identity(source.info()) ? xxh3(source.info().name) : 0;
}

}  // namespace

SampleView make_sample(const SampleChains& chains, SampleView sample, const StepContext& context,
                       std::size_t& made, std::span<const std::byte>& bytes) {
  auto& samples = context.scratch->samples_made;
  if (samples.size() == made) samples.emplace_back();
  std::vector<std::byte>& buffer = samples[made++];
  std::size_t used = 0;
  chains.run(sample, context, [&](std::size_t, const FieldView& field) {
    const std::size_t more = appended_bytes(field);
    if (buffer.capacity() < used + more) context.scratch->charge(more);
    used = append_field(buffer, used, field);
  });
  bytes = std::span(buffer).first(used);
  SampleView result;
  read_sample(bytes, chains.output().size(), result);
  return result;
}

CachedChains::CachedChains(const StreamPlan& plan, const Fields& input) : records_(plan.source->info().records) {
  Fields fields = input;
  std::span<const SampleStage> stages = plan.sample_stages;
  std::size_t first = 0;
  for (const PlannedCache& planned : plan.caches) {
    planned.cache->bind(
        mix_seed(plan.cache_fingerprint(planned), tell_apart(*plan.source, planned.cache->resident())), records_);
    levels_.push_back(
        {.cache = planned.cache,
         .before = SampleChains(fields, stages.subspan(first, planned.stages - first), ChainPlace::kBeforeCache)});
    fields = levels_.back().before.output();
    first = planned.stages;
  }
  last_.emplace(fields, stages.subspan(first), ChainPlace::kAfterCache);
}

FoundSample CachedChains::find(std::uint64_t record, std::vector<std::byte>& scratch) const noexcept {
  for (std::size_t i = levels_.size(); i-- > 0;) {
    const auto bytes = levels_[i].cache->find(record, scratch);
    if (!bytes.empty()) return {.bytes = bytes, .cache = i};
  }
  return {};
}

void CachedChains::run(SampleView& sample, std::uint64_t record, const StepContext& context,
                       std::size_t& made) const {
  run_from(0, sample, record, context, made);
}

SampleView CachedChains::run(const FoundSample& found, std::uint64_t record, const StepContext& context,
                             std::size_t& made) const {
  SampleView sample;
  read_sample(found.bytes, levels_[found.cache].before.output().size(), sample);
  run_from(found.cache + 1, sample, record, context, made);
  return sample;
}

void CachedChains::run_from(std::size_t level, SampleView& sample, std::uint64_t record,
                            const StepContext& context, std::size_t& made) const {
  for (; level < levels_.size(); ++level) {
    std::span<const std::byte> bytes;
    sample = make_sample(levels_[level].before, sample, context, made, bytes);
    levels_[level].cache->insert(record, bytes);
    if (context.samples != nullptr)
      context.scratch->stamp_ns = now_ns();  // keeping a sample is no step of the plan
  }
}

bool CachedChains::is_slow() const noexcept {
  if (last_->is_slow()) return true;
  for (std::size_t i = levels_.size(); i-- > 0 && !is_warm(levels_[i]);) {
    if (levels_[i].before.is_slow()) return true;
  }
  return false;
}

bool CachedChains::is_warm() const noexcept {
  return std::ranges::any_of(levels_, [this](const Level& level) { return is_warm(level); });
}

bool CachedChains::may_wait() const noexcept {
  return std::ranges::any_of(levels_, [](const Level& level) { return !level.cache->resident(); });
}

void CachedChains::add_stages(std::vector<StageName>& stages) {
  for (Level& level : levels_) level.before.add_stages(stages);
  last_->add_stages(stages);
}

void CachedChains::name_spans(Trace& trace) {
  for (Level& level : levels_) level.before.name_spans(trace);
  last_->name_spans(trace);
}

CacheCounters counted(const std::vector<PlannedCache>& caches) {
  CacheCounters sum;
  for (const PlannedCache& planned : caches) {
    const CacheCounters one = planned.cache->counters();
    if (planned.cache == caches.front().cache) sum.misses = one.misses;
    sum.hits += one.hits;
    sum.records += one.records;
    sum.bytes += one.bytes;
    sum.refused += one.refused;
    sum.bad += one.bad;
  }
  return sum;
}

}  // namespace headrace
