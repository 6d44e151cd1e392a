#include "headrace/pipeline/engine/remote_reads.h"

#include <algorithm>

namespace headrace {
namespace {

// What the products of bandwidth and delay that occur need: a gigabyte a second over 60 ms.
constexpr std::uint64_t kMaxWindow = std::uint64_t{64} << 20;

// Records to have announced after those of a batch: small batches alone would leave the line idle.
constexpr std::uint64_t kRecordsAhead = 256;

}  // namespace

RemoteReads::RemoteReads(RunPlan& run, MemoryBudget& budget) : run_(run), charged_(budget) {
  if (!run.reads_network()) return;
  const std::uint64_t limit = budget.limit(), used = budget.used();
  const std::uint64_t bytes =
      limit == 0 ? kMaxWindow : std::min(kMaxWindow, limit > used ? (limit - used) / 2 : 0);
  charged_.hold(bytes, "records fetched ahead over the network");
  window_.emplace(bytes);
}

void RemoteReads::announce(const Slot& slot) {
  if (!window_) return;
  const std::uint64_t sequence = slot.position.sequence;
  if (next_ <= sequence) {
    announce_records(std::span(slot.records).first(static_cast<std::size_t>(slot.rows_to_write())));
    next_ = sequence + 1;
  }
  const std::uint64_t batches = kRecordsAhead / std::max<std::uint64_t>(1, slot.records.size());
  for (const std::uint64_t end = run_.schedule.batches(); next_ < end && next_ <= sequence + batches; ++next_) {
    if (!run_.earlier.contains(next_)) announce_batch(next_);
  }
}

void RemoteReads::announce_batch(std::uint64_t sequence) {
  BatchPosition position = run_.schedule.position(sequence);
  position.first_row = run_.layout.examples_before(position.global_examples);
  records_.resize(
      static_cast<std::size_t>(run_.layout.first_of(position.global_examples, run_.layout.local_replicas)));
  passes_.resize(records_.size());
  run_.schedule.locate(position, records_, passes_, {});
  announce_records(records_);
}

void RemoteReads::announce_records(std::span<const std::uint64_t> records) {
  uncached_.clear();
  for (const std::uint64_t record : records) {
    const auto holds = [record](const PlannedCache& one) { return one.cache->holds(record); };
    if (std::ranges::none_of(run_.plan.caches, holds)) uncached_.push_back(record);
  }
  if (!uncached_.empty()) run_.source().will_read(uncached_);
}

void RemoteReads::forget() const noexcept {
  if (!window_) return;
  try {
    run_.source().will_read({});
  } catch (const std::exception&) {  // then its memory is kept as long as the source
  }
}

}  // namespace headrace
