// shard(), without_shard() and shard_for_worker(): every count-th position, the others, or some of the files.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/stages/option_stage.h"
#include "headrace/pipeline/plan/stages/stage_calls.h"

namespace headrace {
namespace {

struct ShardOf {
  std::uint64_t count = 1, index = 0;

  void each_field(OptionVisitor& visit) {
    visit("count", count, "The number of shards.");
    visit("index", index, "This shard's number, from 0.");
  }
};

constexpr StageTraits kTakesShard{.by_number = true, .keeps_order = true, .streams = true};

// Returns how many of `positions` are every count-th from `index` on.
constexpr std::uint64_t in_shard(std::uint64_t positions, std::uint64_t count, std::uint64_t index) noexcept {
  return positions > index ? (positions - index - 1) / count + 1 : 0;
}

// A worker's part: every count-th position from one on.
class ShardIndex final : public IndexStage {
 public:
  ShardIndex(std::uint64_t before, const ShardOf& shard)
      : count_(shard.count), index_(shard.index), size_(in_shard(before, count_, index_)) {}

  std::uint64_t size() const noexcept override { return size_; }
  Located locate(const Located& at, IndexMemory* /*memory*/) const override {
    return {.record = at.record * count_ + index_, .pass = at.pass};
  }

 private:
  std::uint64_t count_, index_, size_;
};

class ShardStage final : public OrderStage<ShardOf> {
 public:
  using OrderStage::OrderStage;

  StageTraits traits() const override { return kTakesShard; }
  Indexed index(const StageInput& before) const override {
    auto stage = std::make_shared<const ShardIndex>(before.positions, options());
    return {.positions = stage->size(), .stage = stage};
  }
};

// The complement of a shard: all positions except every count-th, from a given one on.
class WithoutShardIndex final : public IndexStage {
 public:
  WithoutShardIndex(std::uint64_t before, const ShardOf& shard)
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

class WithoutShardStage final : public OrderStage<ShardOf> {
 public:
  using OrderStage::OrderStage;

  StageTraits traits() const override { return kTakesShard; }
  Indexed index(const StageInput& before) const override {
    auto stage = std::make_shared<const WithoutShardIndex>(before.positions, options());
    return {.positions = stage->size(), .stage = stage};
  }
};

using FileRange = std::pair<std::uint64_t, std::uint64_t>;  // [first, end) of a file's records

// The records of some of the source's files.
class ShardFilesIndex final : public IndexStage {
 public:
  explicit ShardFilesIndex(const std::vector<FileRange>& files) {
    for (const auto& [first, end] : files) {
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

class ShardFilesStage final : public OrderStage<WorkerShard> {
 public:
  ShardFilesStage(const char* name, WorkerShard shard, std::vector<FileRange> files)
      : OrderStage(name, shard), files_(std::move(files)) {}

  std::string describe() const override {
    return fmt::format("shard({} of {}, by file: {} files)", options().index, options().count, files_.size());
  }
  StageTraits traits() const override { return {.keeps_order = true}; }
  Indexed index(const StageInput& /*before*/) const override {
    auto stage = std::make_shared<const ShardFilesIndex>(files_);
    return {.positions = stage->size(), .stage = stage};
  }

 private:
  std::vector<FileRange> files_;  // in order
};

constexpr const char* kShard = "shard";
constexpr const char* kWithoutShard = "without_shard";
constexpr const char* kShardForWorker = "shard_for_worker";

// Returns whether the plan is a source as it was opened.
bool is_source(const PlanPtr& plan) { return plan->before == nullptr && source_of(plan).combination == nullptr; }

// Returns the files index, count + index, ... Throws ConfigError if the source is not made of files.
std::vector<FileRange> files_of_worker(const PlanPtr& plan, const WorkerShard& shard) {
  const SourceInfo& info = source_of(plan).source->info();
  if (!is_source(plan)) {
    throw ConfigError("shard_for_worker() by file: other stages come before it", "put it right after the source");
  }
  if (info.file_ends.empty()) {
    throw ConfigError(fmt::format("shard_for_worker() by file: {} does not consist of several files", info.name),
                      "shard by element");
  }
  if (info.file_ends.size() < shard.count) {
    throw ConfigError(fmt::format("shard_for_worker() by file: {} has {} files for {} workers", info.name,
                                  info.file_ends.size(), shard.count),
                      "shard by element");
  }
  std::vector<FileRange> files;
  for (std::size_t file = shard.index; file < info.file_ends.size(); file += shard.count) {
    files.emplace_back(file == 0 ? 0 : info.file_ends[file - 1], info.file_ends[file]);
  }
  return files;
}

}  // namespace

Dataset Dataset::shard(std::uint64_t count, std::uint64_t index) const {
  if (index >= count) {
    throw ConfigError(fmt::format("shard({}, {}): the index must be below the number of shards", count, index));
  }
  return Dataset(
      add_stage(plan_, std::make_shared<const ShardStage>(kShard, ShardOf{.count = count, .index = index})));
}

Dataset Dataset::without_shard(std::uint64_t count, std::uint64_t index) const {
  if (count < 2 || index >= count) {
    throw ConfigError(fmt::format(
        "without_shard({}, {}): it takes two shards or more, and an index below their number", count, index));
  }
  return Dataset(add_stage(
      plan_, std::make_shared<const WithoutShardStage>(kWithoutShard, ShardOf{.count = count, .index = index})));
}

Dataset Dataset::shard_for_worker(WorkerShard shard) const {
  if (shard.index >= shard.count) {
    throw ConfigError(fmt::format("shard_for_worker({}, {}): the index must be below the number of workers",
                                  shard.count, shard.index));
  }
  const bool whole_files = is_source(plan_) && source_of(plan_).source->info().file_ends.size() >= shard.count;
  if (shard.by == ShardBy::kFile || (shard.by == ShardBy::kAuto && whole_files)) {
    std::vector<FileRange> files = files_of_worker(plan_, shard);
    shard.by = ShardBy::kFile;
    return Dataset(
        add_stage(plan_, std::make_shared<const ShardFilesStage>(kShardForWorker, shard, std::move(files))));
  }
  return this->shard(shard.count, shard.index);
}

StageCall shard_call() {
  return stage_call<ShardOf, [](const Dataset& data, ShardOf options) {
    return data.shard(options.count, options.index);
  }>(kShard, {"count", "index"});
}

StageCall without_shard_call() {
  return stage_call<ShardOf, [](const Dataset& data, ShardOf options) {
    return data.without_shard(options.count, options.index);
  }>(kWithoutShard, {"count", "index"});
}

StageCall shard_for_worker_call() {
  return stage_call<WorkerShard, [](const Dataset& data, WorkerShard options) {
    return data.shard_for_worker(options);
  }>(kShardForWorker, {"count", "index"});
}

}  // namespace headrace
