// The stages of a plan on its samples, cut by its caches.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "headrace/pipeline/operations/machinery/sample_chains.h"
#include "headrace/pipeline/plan/plan.h"

namespace headrace {

// A sample that a cache holds; empty: none does.
struct FoundSample {
  std::span<const std::byte> bytes;
  std::size_t cache = 0;  // which of the plan's

  bool empty() const noexcept { return bytes.empty(); }
};

// Const except for the caches, which are thread-safe; shared by all threads.
class CachedChains {
 public:
  // Binds the plan's caches. `input` are the fields of the samples before its first stage.
  CachedChains(const StreamPlan& plan, const Fields& input);

  // Returns the stages after the last cache.
  const SampleChains& last() const noexcept { return *last_; }
  SampleChains& last() noexcept { return *last_; }
  bool has_caches() const noexcept { return !levels_.empty(); }

  // Returns the record's sample of the last cache that has it, possibly in `scratch`. Counts hits and misses.
  FoundSample find(std::uint64_t record, std::vector<std::byte>& scratch) const noexcept;
  // Make the fields before the stages after the last cache, of a sample, which is stored in all caches that it
  // passes, or of a found one. They are in the context's scratch or `found`. `made`: samples there that are in
  // use; those of the result are added. Views are made where they stay: to copy one right after its parts were
  // written is slow.
  void run(SampleView& sample, std::uint64_t record, const StepContext& context, std::size_t& made) const;
  SampleView run(const FoundSample& found, std::uint64_t record, const StepContext& context,
                 std::size_t& made) const;

  // Returns whether a sample currently merits a separate task: those in a warm cache are not made any more.
  bool is_slow() const noexcept;
  // Returns whether every record is in one of the caches.
  bool is_warm() const noexcept;
  // Returns whether finding a sample may wait for a file.
  bool may_wait() const noexcept;

  void add_stages(std::vector<StageName>& stages);
  void name_spans(Trace& trace);

 private:
  struct Level {
    std::shared_ptr<SampleCache> cache;
    SampleChains before;  // from the previous cache to this one
  };

  void run_from(std::size_t level, SampleView& sample, std::uint64_t record, const StepContext& context,
                std::size_t& made) const;
  bool is_warm(const Level& level) const noexcept { return level.cache->counters().records == records_; }

  std::uint64_t records_;
  std::vector<Level> levels_;
  std::optional<SampleChains> last_;
};

// Returns the sample that the chains make, in the scratch: one more of those made.
SampleView make_sample(const SampleChains& chains, SampleView sample, const StepContext& context,
                       std::size_t& made, std::span<const std::byte>& bytes);

// Returns the sum of the caches' counters; misses are those of the first cache, after which a sample is made anew.
CacheCounters counted(const std::vector<PlannedCache>& caches);

}  // namespace headrace
