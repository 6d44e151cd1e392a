#include "headrace/pipeline/plan/index/index_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/failures.h"
#include "headrace/devices/base/permutation.h"
#include "headrace/devices/base/sizes.h"
#include "headrace/pipeline/plan/index/batch_order.h"
#include "headrace/pipeline/plan/index/bit_select.h"
#include "headrace/pipeline/plan/index/chosen_numbers.h"
#include "headrace/pipeline/plan/index/combination_index.h"
#include "headrace/pipeline/plan/index/index_stage.h"
#include "headrace/pipeline/plan/index/selection.h"
#include "headrace/pipeline/plan/plan.h"

namespace headrace {
namespace {

// All positions, several times over; each time is a separate pass.
class RepeatIndex final : public IndexStage {
 public:
  // Throws ConfigError if there would be more positions than can be counted.
  RepeatIndex(std::uint64_t before, std::uint64_t times);

  std::uint64_t size() const noexcept override;
  Located locate(const Located& at, IndexMemory* /*memory*/) const override;

 private:
  std::uint64_t before_, times_;
};

RepeatIndex::RepeatIndex(std::uint64_t before, std::uint64_t times) : before_(before), times_(times) {
  if (checked_product({before, times})) return;
  throw ConfigError(fmt::format("repeat({}) of {} records is more than can be counted", times, before),
                    "repeat fewer times, or ask the loader for more epochs");
}

std::uint64_t RepeatIndex::size() const noexcept { return before_ * times_; }

Located RepeatIndex::locate(const Located& at, IndexMemory* /*memory*/) const {
  return {.record = at.record % before_, .pass = at.pass * times_ + at.record / before_};
}

// Returns how many of `positions` are every count-th from `index` on.
constexpr std::uint64_t in_shard(std::uint64_t positions, std::uint64_t count, std::uint64_t index) noexcept {
  return positions > index ? (positions - index - 1) / count + 1 : 0;
}

// A worker's part: every count-th position from one on.
class ShardIndex final : public IndexStage {
 public:
  ShardIndex(std::uint64_t before, const ShardStage& shard)
      : count_(shard.count), index_(shard.index), size_(in_shard(before, count_, index_)) {}

  std::uint64_t size() const noexcept override { return size_; }
  Located locate(const Located& at, IndexMemory* /*memory*/) const override {
    return {.record = at.record * count_ + index_, .pass = at.pass};
  }

 private:
  std::uint64_t count_, index_, size_;
};

// The complement of a shard: all positions except every count-th, from a given one on.
class WithoutShardIndex final : public IndexStage {
 public:
  WithoutShardIndex(std::uint64_t before, const WithoutShardStage& shard)
      : count_(shard.count), index_(shard.index), size_(before - in_shard(before, count_, index_)) {}

  std::uint64_t size() const noexcept override { return size_; }
  // Each group of count_ positions lacks the one at index_.
  Located locate(const Located& at, IndexMemory* /*memory*/) const override {
    const std::uint64_t group = at.record / (count_ - 1), in_group = at.record % (count_ - 1);
    return {.record = group * count_ + in_group + (in_group >= index_ ? 1 : 0), .pass = at.pass};
  }

 private:
  std::uint64_t count_, index_, size_;
};

// The records of some of the source's files.
class ShardFilesIndex final : public IndexStage {
 public:
  explicit ShardFilesIndex(const ShardFilesStage& files) {
    for (const auto& [first, end] : files.ranges) {
      if (first == end) continue;
      ranges_.emplace_back(size_, first);
      size_ += end - first;
    }
  }

  std::uint64_t size() const noexcept override { return size_; }
  // O(log of the files).
  Located locate(const Located& at, IndexMemory* /*memory*/) const override {
    const auto after = std::ranges::upper_bound(ranges_, at.record, {}, &Range::first);
    return {.record = at.record - (after - 1)->first + (after - 1)->second, .pass = at.pass};
  }

 private:
  using Range = std::pair<std::uint64_t, std::uint64_t>;  // positions before it, its first one
  std::vector<Range> ranges_;
  std::uint64_t size_ = 0;
};

// All positions among themselves, in another order in each pass or not.
class ShuffleIndex final : public IndexStage {
 public:
  // `key` keys the order, with the pass.
  ShuffleIndex(std::uint64_t size, const ShuffleOptions& options, std::uint64_t key)
      : size_(size), key_(key), each_pass_anew_(options.reshuffle_each_epoch) {}

  std::uint64_t size() const noexcept override { return size_; }
  Located locate(const Located& at, IndexMemory* memory) const override {
    auto& order = static_cast<Order&>(*memory);
    const std::uint64_t pass = each_pass_anew_ ? at.pass : 0;
    if (order.pass != pass) {
      order.permutation = Permutation(size_, mix_seed(key_, pass));
      order.pass = pass;
    }
    return {.record = order.permutation(at.record), .pass = at.pass};
  }
  std::unique_ptr<IndexMemory> create_memory() const override { return std::make_unique<Order>(); }

 private:
  struct Order final : IndexMemory {
    Permutation permutation;
    std::uint64_t pass = ~std::uint64_t{0};  // none yet
  };

  std::uint64_t size_, key_;
  bool each_pass_anew_;
};

// The positions of each window among themselves, in another order in each pass or not.
class ShuffleWindowIndex final : public IndexStage {
 public:
  ShuffleWindowIndex(std::uint64_t size, const ShuffleWindowOptions& options, std::uint64_t key)
      : size_(size), window_(options.size), key_(key), each_pass_anew_(options.reshuffle_each_epoch) {}

  std::uint64_t size() const noexcept override { return size_; }
  Located locate(const Located& at, IndexMemory* memory) const override {
    auto& order = static_cast<Order&>(*memory);
    const std::uint64_t window = at.record / window_, first = window * window_;
    const std::uint64_t pass = each_pass_anew_ ? at.pass : 0;
    if (order.window != window || order.pass != pass) {
      order.permutation = Permutation(std::min(window_, size_ - first), mix_seed(mix_seed(key_, pass), window));
      order.pass = pass;
      order.window = window;
    }
    return {.record = first + order.permutation(at.record - first), .pass = at.pass};
  }
  std::uint64_t last_before(std::uint64_t position) const override { return first_before(position) + window_ - 1; }
  std::uint64_t first_before(std::uint64_t position) const override { return position / window_ * window_; }
  std::uint64_t needed_before(std::uint64_t position) const override { return position; }
  std::unique_ptr<IndexMemory> create_memory() const override { return std::make_unique<Order>(); }

 private:
  struct Order final : IndexMemory {
    Permutation permutation;
    std::uint64_t pass = 0, window = ~std::uint64_t{0};  // none yet
  };

  std::uint64_t size_, window_, key_;
  bool each_pass_anew_;
};

// The positions after the first few.
class SkipIndex final : public IndexStage {
 public:
  SkipIndex(std::uint64_t before, std::uint64_t count)
      : skipped_(std::min(before, count)), size_(before - skipped_) {}

  std::uint64_t size() const noexcept override { return size_; }
  Located locate(const Located& at, IndexMemory* /*memory*/) const override {
    return {.record = at.record + skipped_, .pass = at.pass};
  }

 private:
  std::uint64_t skipped_, size_;
};

// The positions of a list.
class SelectIndex final : public IndexStage {
 public:
  // Throws ConfigError if one is not below `before`.
  SelectIndex(std::uint64_t before, const SelectStage& select)
      : chosen_(select.chosen), passes_(select.draws_anew ? chosen_->max_occurrences() : 1) {
    chosen_->require_below(before);
  }

  std::uint64_t size() const noexcept override { return chosen_->numbers().size(); }
  // A repeated position is of another pass.
  Located locate(const Located& at, IndexMemory* /*memory*/) const override {
    const std::uint64_t occurrence = passes_ > 1 ? chosen_->occurrence(at.record) : 0;
    return {.record = chosen_->numbers()[at.record], .pass = at.pass * passes_ + occurrence};
  }

 private:
  std::shared_ptr<const ChosenNumbers> chosen_;
  std::uint64_t passes_;
};

// All positions as they are; remembers them.
class EnumerateIndex final : public IndexStage {
 public:
  // `place` is that of its number among those of all such stages.
  EnumerateIndex(std::uint64_t size, std::size_t place) : size_(size), place_(place) {}

  std::uint64_t size() const noexcept override { return size_; }
  Located locate(const Located& at, IndexMemory* memory) const override {
    if (memory != nullptr) static_cast<Number&>(*memory).number = at.record;
    return at;
  }
  std::unique_ptr<IndexMemory> create_memory() const override { return std::make_unique<Number>(place_); }

 private:
  struct Number final : IndexMemory {
    explicit Number(std::size_t at) : place(at) {}
    void write_numbers(std::uint64_t* numbers) const override { numbers[place] = number; }

    std::size_t place;
    std::uint64_t number = 0;
  };

  std::uint64_t size_;
  std::size_t place_;
};

// The positions that a filter keeps.
class FilterIndex final : public IndexStage {
 public:
  // Runs the filter unless it has run before, which reads the source. Throws as Selection::kept() does.
  explicit FilterIndex(const FilterStage& filter) : selection_(filter.selection), kept_(&selection_->kept()) {}

  std::uint64_t size() const noexcept override { return kept_->count(); }
  Located locate(const Located& at, IndexMemory* /*memory*/) const override {
    return {.record = kept_->select(at.record), .pass = at.pass};
  }

 private:
  std::shared_ptr<const Selection> selection_;
  const BitSelect* kept_;  // the selection's
};

}  // namespace

IndexMap::IndexMap(std::uint64_t records, const std::vector<Stage>& stages, std::uint64_t seed) : size_(records) {
  for (const Stage& stage : stages) {
    if (const auto* take = std::get_if<TakeStage>(&stage)) {  // positions stay as they are
      size_ = std::min(size_, take->count);
      continue;
    }
    stages_.push_back(create_stage(stage, seed));
    const bool only_numbers =
        std::holds_alternative<EnumerateStage>(stage) || std::holds_alternative<BucketStage>(stage);
    if (!only_numbers) ++keyed_;
    size_ = stages_.back()->size();
  }
}

std::uint64_t IndexMap::walk(std::uint64_t (IndexStage::*before)(std::uint64_t) const,
                             std::uint64_t position) const {
  for (std::size_t i = stages_.size(); i-- > 0;) position = ((*stages_[i]).*before)(position);
  return position;
}

IndexStagePtr IndexMap::create_stage(const Stage& stage, std::uint64_t seed) const {
  // The place in the chain keeps two shuffles with one seed apart.
  const auto key = [&](std::uint64_t own) { return mix_seed(mix_seed(seed, own), keyed_); };
  if (const auto* shuffle = std::get_if<ShuffleStage>(&stage)) {
    return std::make_shared<ShuffleIndex>(size_, shuffle->options, key(shuffle->options.seed));
  }
  if (const auto* window = std::get_if<ShuffleWindowStage>(&stage)) {
    return std::make_shared<ShuffleWindowIndex>(size_, window->options, key(window->options.seed));
  }
  if (const auto* repeat = std::get_if<RepeatStage>(&stage))
    return std::make_shared<RepeatIndex>(size_, repeat->times);
  if (const auto* skip = std::get_if<SkipStage>(&stage)) return std::make_shared<SkipIndex>(size_, skip->count);
  if (const auto* select = std::get_if<SelectStage>(&stage)) return std::make_shared<SelectIndex>(size_, *select);
  if (const auto* shard = std::get_if<ShardStage>(&stage)) return std::make_shared<ShardIndex>(size_, *shard);
  if (const auto* others = std::get_if<WithoutShardStage>(&stage)) {
    return std::make_shared<WithoutShardIndex>(size_, *others);
  }
  if (const auto* files = std::get_if<ShardFilesStage>(&stage)) return std::make_shared<ShardFilesIndex>(*files);
  if (const auto* filter = std::get_if<FilterStage>(&stage)) return std::make_shared<FilterIndex>(*filter);
  if (const auto* number = std::get_if<EnumerateStage>(&stage)) {
    return std::make_shared<EnumerateIndex>(size_, number->place);
  }
  if (const auto* bucket = std::get_if<BucketStage>(&stage)) {
    return std::make_shared<EnumerateIndex>(size_, bucket->place);
  }
  if (const auto* batches = std::get_if<BatchOrderStage>(&stage)) {
    return std::make_shared<BatchOrderIndex>(size_, *batches->order, key(0));
  }
  const auto* combine = std::get_if<CombineStage>(&stage);
  HEADRACE_CHECK(combine != nullptr, "not an index stage: " + describe(stage));
  HEADRACE_CHECK(stages_.empty(), "datasets are combined before anything else");
  return std::make_shared<CombinationIndex>(*combine->combination, seed);
}

IndexCursor::IndexCursor(const IndexMap& map) : map_(&map) {
  for (const IndexStagePtr& stage : map.stages_) memories_.push_back(stage->create_memory());
}

}  // namespace headrace
