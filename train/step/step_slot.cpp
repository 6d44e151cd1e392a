#include <algorithm>
#include <cstring>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/workers.h"
#include "headrace/train/model/submission.h"
#include "headrace/train/step/step_slot.h"
#include "headrace/train/strategy.h"

namespace headrace {

std::vector<MetricValue> RunningTotals::metrics() const {
  return objective() ? objective()->values(seen_) : std::vector<MetricValue>{};
}

void RunningTotals::read(const StepSlot& slot) {
  std::ranges::fill(seen_.sums, MetricSums{});
  seen_.tables.clear();
  for (const ShardSlot& shard : slot.shards) {
    objective()->add(shard.totals, seen_);
    examples_ += shard.examples;
  }
}

void RunningTotals::finish() {
  if (!strategy_.workers() || objective() == nullptr) return read_tables();
  seen_ = objective()->no_totals();
  for (const std::vector<std::byte>& set : gather()) add(set, seen_);
}

std::vector<std::vector<std::byte>> RunningTotals::gather() const {
  const std::size_t bytes = saved_set_bytes(), of_replica = bytes * static_cast<std::size_t>(saved_sets());
  std::vector<std::byte> mine(of_replica * static_cast<std::size_t>(strategy_.local_replicas()));
  submit_and_wait(strategy_, [&] {
    for (int r = 0; r < strategy_.local_replicas(); ++r)
      save(r, mine.data() + static_cast<std::size_t>(r) * of_replica);
  });
  std::vector<std::vector<std::byte>> sets;
  for (const auto& worker : gather_values(*strategy_.workers(), std::span<const std::byte>(mine))) {
    for (const std::byte* set = worker.data(); set != worker.data() + worker.size(); set += bytes) {
      sets.emplace_back(set, set + bytes);
    }
  }
  return sets;
}

void RunningTotals::add(const std::vector<std::byte>& set, ObjectiveTotals& into) const {
  objective()->add(set.data(), into);
  objective()->add_tables(set.data() + program_.layout().totals_bytes, into);
}

void RunningTotals::read_tables() {
  const std::size_t bytes = program_.layout().tables_bytes;
  if (bytes == 0) return;
  seen_.tables.clear();
  for (int shard = 0; shard < program_.shards().local_shards(); ++shard) {
    std::vector<std::byte> counted(bytes);
    Stream& stream = program_.shards().stream(shard);
    stream.copy(counted.data(), program_.tables(shard), bytes);
    stream.synchronize();
    objective()->add_tables(counted.data(), seen_);
  }
}

void RunningTotals::reset() {
  const std::size_t totals_bytes = program_.layout().totals_bytes, tables_bytes = program_.layout().tables_bytes;
  for (int shard = 0; shard < program_.shards().local_shards(); ++shard) {
    Stream& stream = program_.shards().stream(shard);
    stream.fill(program_.totals(shard), 0, totals_bytes);
    if (tables_bytes > 0) stream.fill(program_.tables(shard), 0, tables_bytes);
  }
  if (objective()) seen_ = objective()->no_totals();
  examples_ = 0;
}

void RunningTotals::save(int replica, std::byte* into) const {
  const BlockLayout& layout = program_.layout();
  const Shards& shards = program_.shards();
  Stream& stream = strategy_.stream(replica);
  for (int shard = shards.first_of(replica); shard < shards.first_of(replica + 1); ++shard) {
    stream.copy(into, program_.totals(shard), layout.totals_bytes);
    if (layout.tables_bytes > 0) {
      stream.copy(into + layout.totals_bytes, program_.tables(shard), layout.tables_bytes);
    }
    into += saved_set_bytes();
  }
}

void RunningTotals::write(int shard, const std::byte* from) const {
  const BlockLayout& layout = program_.layout();
  Stream& stream = program_.shards().stream(shard);
  stream.copy(program_.totals(shard), from, layout.totals_bytes);
  if (layout.tables_bytes > 0) {
    stream.copy(program_.tables(shard), from + layout.totals_bytes, layout.tables_bytes);
  }
}

void RunningTotals::restore(const std::vector<std::vector<std::byte>>& saved) {
  if (saved.empty()) return;
  const std::size_t totals_bytes = program_.layout().totals_bytes, tables_bytes = program_.layout().tables_bytes;
  ObjectiveTotals all = objective()->no_totals();
  for (const std::vector<std::byte>& set : saved) {
    if (set.size() != saved_set_bytes()) {
      throw ConfigError("the totals of the epoch so far are of another loss or of other metrics",
                        "compile the model with those that it was trained with");
    }
    add(set, all);
  }
  std::vector<std::byte> sum(saved_set_bytes());
  std::memcpy(sum.data(), all.sums.data(), totals_bytes);
  if (tables_bytes > 0) std::memcpy(sum.data() + totals_bytes, all.tables.data(), tables_bytes);
  const auto [total, first] = program_.shards().world();
  ObjectiveTotals local = objective()->no_totals();
  const auto count_here = [&](int shard, const std::vector<std::byte>& set) {
    write(shard, set.data());
    objective()->add(set.data(), local);
  };
  submit_and_wait(strategy_, [&] {
    const bool same_shards = static_cast<int>(saved.size()) == total;
    if (!same_shards && first == 0) count_here(0, sum);
    for (int s = 0; s < program_.shards().local_shards() && same_shards; ++s) {
      count_here(s, saved[static_cast<std::size_t>(first + s)]);
    }
  });
  examples_ = local.sums.front().examples;
  all.tables.clear();
  seen_ = std::move(all);
}

}  // namespace headrace
