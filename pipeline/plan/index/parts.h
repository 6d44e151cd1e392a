// Index stages that leave a part of the positions, or go through them several times.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "headrace/pipeline/plan/index/index_stage.h"
#include "headrace/pipeline/plan/plan.h"

namespace headrace {

class BitSelect;

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

// How many of so many positions are every count-th from `index` on.
constexpr std::uint64_t in_shard(std::uint64_t positions, std::uint64_t count, std::uint64_t index) noexcept {
  return positions > index ? (positions - index - 1) / count + 1 : 0;
}

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

class RepeatIndex final : public IndexStage {
 public:
  // ConfigError where there would be more positions than can be counted.
  RepeatIndex(std::uint64_t before, std::uint64_t times);

  std::uint64_t size() const noexcept override { return before_ * times_; }
  Located locate(const Located& at, IndexMemory* /*memory*/) const override {
    return {.record = at.record % before_, .pass = at.pass * times_ + at.record / before_};
  }

 private:
  std::uint64_t before_, times_;
};

// What a filter keeps. It is found now, if it was not before: that reads the source.
class FilterIndex final : public IndexStage {
 public:
  // Throws what Selection::kept() does.
  explicit FilterIndex(const FilterStage& filter);

  std::uint64_t size() const noexcept override;
  Located locate(const Located& at, IndexMemory* /*memory*/) const override;

 private:
  std::shared_ptr<const Selection> selection_;
  const BitSelect* kept_;  // the selection's
};

}  // namespace headrace
