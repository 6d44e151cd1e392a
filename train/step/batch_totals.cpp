// What a checkpoint keeps of an epoch that has begun.
#include <cstring>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/train/model/submission.h"
#include "headrace/train/step/batch_runner.h"

namespace headrace {

void BatchRunner::save_totals(int replica, std::byte* into) const {
  Stream& stream = model_.strategy->stream(replica);
  for_shards_of(replica, [&](int shard) {
    stream.copy(into, totals(shard), totals_bytes());
    if (tables_bytes() > 0) stream.copy(into + totals_bytes(), tables(shard), tables_bytes());
    into += saved_set_bytes();
  });
}

void BatchRunner::write_totals(int shard, const std::byte* from) {
  stream(shard).copy(totals(shard), from, totals_bytes());
  if (tables_bytes() > 0) stream(shard).copy(tables(shard), from + totals_bytes(), tables_bytes());
}

void BatchRunner::restore_totals(const std::vector<std::vector<std::byte>>& saved) {
  if (saved.empty()) return;
  ObjectiveTotals all = objective_->no_totals();
  for (const std::vector<std::byte>& set : saved) {
    if (set.size() != saved_set_bytes()) {
      throw ConfigError("the totals of the epoch so far are of another loss or of other metrics",
                        "compile the model with those that it was trained with");
    }
    objective_->add(set.data(), all);
    objective_->add_tables(set.data() + totals_bytes(), all);
  }
  std::vector<std::byte> sum(saved_set_bytes());
  std::memcpy(sum.data(), all.sums.data(), totals_bytes());
  if (tables_bytes() > 0) std::memcpy(sum.data() + totals_bytes(), all.tables.data(), tables_bytes());
  submit_and_wait(*model_.strategy, [&] {
    const auto [total, first] = shards_.world();
    const bool same_shards = static_cast<int>(saved.size()) == total;
    if (!same_shards && first == 0) write_totals(0, sum.data());
    for (int s = 0; s < shards_.local_shards() && same_shards; ++s) {
      write_totals(s, saved[static_cast<std::size_t>(first + s)].data());
    }
  });
  examples_ = all.sums.front().examples;
  all.tables.clear();
  seen_ = std::move(all);
}

}  // namespace headrace
