// shuffle(), shuffle_window(), shuffle_blocks() and shuffle_shards(): positions among themselves, in another order
// in each pass or not.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/permutation.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/rng.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/index/shuffle_windows.h"
#include "headrace/pipeline/plan/stages/option_stage.h"
#include "headrace/pipeline/plan/stages/stage_calls.h"

namespace headrace {
namespace {

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

class ShuffleStage final : public OrderStage<ShuffleOptions> {
 public:
  using OrderStage::OrderStage;

  StageTraits traits() const override {
    return {.shuffles = true, .orders = true, .scatters = true, .by_number = true};
  }
  Indexed index(const StageInput& before) const override {
    return {
        .positions = before.positions,
        .stage = std::make_shared<const ShuffleIndex>(before.positions, options(), before.key(options().seed))};
  }
};

// The positions of each window among themselves, in another order in each pass or not.
class ShuffleWindowIndex final : public IndexStage {
 public:
  ShuffleWindowIndex(std::uint64_t size, const ShuffleWindows& windows, std::uint64_t key, bool each_pass_anew)
      : size_(size), windows_(windows), key_(key), each_pass_anew_(each_pass_anew) {}

  std::uint64_t size() const noexcept override { return size_; }
  Located locate(const Located& at, IndexMemory* memory) const override {
    auto& order = static_cast<Order&>(*memory);
    const std::uint64_t window = windows_.number_of(at.record), first = windows_.begin_of(window);
    const std::uint64_t pass = each_pass_anew_ ? at.pass : 0;
    if (order.window != window || order.pass != pass) {
      const std::uint64_t end = std::min(windows_.begin_of(window + 1), size_);
      order.permutation = Permutation(end - first, mix_seed(mix_seed(key_, pass), window));
      order.pass = pass;
      order.window = window;
    }
    return {.record = first + order.permutation(at.record - first), .pass = at.pass};
  }
  std::uint64_t last_before(std::uint64_t position) const override {
    return windows_.begin_of(windows_.number_of(position) + 1) - 1;
  }
  std::uint64_t first_before(std::uint64_t position) const override {
    return windows_.begin_of(windows_.number_of(position));
  }
  std::uint64_t needed_before(std::uint64_t position) const override { return position; }
  std::unique_ptr<IndexMemory> create_memory() const override { return std::make_unique<Order>(); }

 private:
  struct Order final : IndexMemory {
    Permutation permutation;
    std::uint64_t pass = 0, window = ~std::uint64_t{0};  // none yet
  };

  std::uint64_t size_;
  ShuffleWindows windows_;
  std::uint64_t key_;
  bool each_pass_anew_;
};

class ShuffleWindowStage final : public OrderStage<ShuffleWindowOptions> {
 public:
  using OrderStage::OrderStage;

  StageTraits traits() const override {
    return {.shuffles = true, .orders = true, .window = options().size, .by_number = true, .streams = true};
  }
  Indexed index(const StageInput& before) const override {
    return {.positions = before.positions,
            .stage = std::make_shared<const ShuffleWindowIndex>(before.positions, ShuffleWindows(options().size),
                                                                before.key(options().seed),
                                                                options().reshuffle_each_epoch)};
  }
};

// The records of shards that are read several at a time, in windows.
class ShuffleShardsStage final : public OrderStage<ShuffleShardsOptions> {
 public:
  using OrderStage::OrderStage;

  void plan_into(PlanBuilder& builder) const override {
    StreamPlan& plan = builder.plan();
    if (plan.source->sharded() == nullptr) {
      throw ConfigError(
          fmt::format("{} of {}, which is no stream of shards", describe(), plan.source->info().name),
          joined({advice("read shards without an index: {}", named("SourceOptions::indexed", "false")),
                  advice("order what has an index: {}", named("Dataset::shuffle_blocks()"))}));
    }
    if (!plan.index_stages.empty() || plan.batch) {
      throw ConfigError(fmt::format("{} after {}: shards are ordered before anything is chosen", describe(),
                                    plan.batch ? plan.batching : plan.index_stages.front()->describe()),
                        "put it first");
    }
    plan.shards = {.options = options(), .windows = windows()};
    builder.add_index_stage(shared_from_this());
  }
  StageTraits traits() const override { return {.shuffles = true, .orders = true, .streams = true}; }
  std::string cost() const override {
    return fmt::format("up to {} wait in memory", count_of(2 * options().window, "record"));
  }
  Indexed index(const StageInput& before) const override {
    return {.positions = before.positions,
            .stage = std::make_shared<const ShuffleWindowIndex>(
                before.positions, windows(), before.key(options().seed), options().reshuffle_each_epoch)};
  }

 private:
  ShuffleWindows windows() const { return {options().window, std::max<std::uint64_t>(1, options().window / 16)}; }
};

// Blocks in another order in each pass or not, and the positions of each group of them among themselves. Blocks
// are cut from a random position on, around the end, so that the last one, which may be smaller, is another one
// each time.
class ShuffleBlocksIndex final : public IndexStage {
 public:
  ShuffleBlocksIndex(std::uint64_t size, const ShuffleBlocksOptions& options, std::uint64_t key)
      : size_(size),
        block_(options.block),
        group_(options.block * options.group),
        key_(key),
        each_pass_anew_(options.reshuffle_each_epoch) {}

  std::uint64_t size() const noexcept override { return size_; }
  Located locate(const Located& at, IndexMemory* memory) const override {
    auto& order = static_cast<Order&>(*memory);
    const std::uint64_t pass = each_pass_anew_ ? at.pass : 0;
    const std::uint64_t group = at.record / group_, first = group * group_;
    if (order.pass != pass) {
      const std::uint64_t key = mix_seed(key_, pass);
      order.blocks = Permutation(size_ / block_, key);
      order.shift = mix_seed(key, kShift) % size_;
    }
    if (order.pass != pass || order.group != group) {
      order.positions =
          Permutation(std::min(group_, size_ - first), mix_seed(mix_seed(key_, pass), kGroups + group));
      order.pass = pass;
      order.group = group;
    }
    const std::uint64_t place = first + order.positions(at.record - first), block = place / block_;
    const std::uint64_t whole = block < size_ / block_ ? order.blocks(block) : block;
    return {.record = (whole * block_ + place % block_ + order.shift) % size_, .pass = at.pass};
  }
  std::unique_ptr<IndexMemory> create_memory() const override { return std::make_unique<Order>(); }

 private:
  static constexpr std::uint64_t kShift = 0, kGroups = 1;

  struct Order final : IndexMemory {
    Permutation blocks, positions;
    std::uint64_t shift = 0, pass = ~std::uint64_t{0}, group = 0;  // none yet
  };

  std::uint64_t size_, block_, group_, key_;
  bool each_pass_anew_;
};

class ShuffleBlocksStage final : public OrderStage<ShuffleBlocksOptions> {
 public:
  using OrderStage::OrderStage;

  StageTraits traits() const override { return {.shuffles = true, .orders = true, .by_number = true}; }
  Indexed index(const StageInput& before) const override {
    return {.positions = before.positions,
            .stage = std::make_shared<const ShuffleBlocksIndex>(before.positions, options(),
                                                                before.key(options().seed))};
  }
};

constexpr const char* kShuffle = "shuffle";
constexpr const char* kShuffleWindow = "shuffle_window";
constexpr const char* kShuffleShards = "shuffle_shards";
constexpr const char* kShuffleBlocks = "shuffle_blocks";

constexpr std::uint64_t kMaxShardsAtATime = 64;  // their places are in a LoaderState
constexpr std::uint64_t kMaxShuffled = std::uint64_t{1} << 31;

}  // namespace

Dataset Dataset::shuffle(ShuffleOptions options) const {
  return Dataset(add_stage(plan_, std::make_shared<const ShuffleStage>(kShuffle, options)));
}

Dataset Dataset::shuffle_window(ShuffleWindowOptions options) const {
  if (options.size < 1) throw ConfigError("shuffle_window(0): a window has at least one position");
  return Dataset(add_stage(plan_, std::make_shared<const ShuffleWindowStage>(kShuffleWindow, options)));
}

Dataset Dataset::shuffle_shards(ShuffleShardsOptions options) const {
  if (options.window < 1 || options.window > kMaxShuffled) {
    throw ConfigError(
        fmt::format("shuffle_shards(window={}): 1 to {} are possible", options.window, kMaxShuffled));
  }
  if (options.shards < 1 || options.shards > kMaxShardsAtATime) {
    throw ConfigError(
        fmt::format("shuffle_shards(shards={}): 1 to {} are possible", options.shards, kMaxShardsAtATime));
  }
  return Dataset(add_stage(plan_, std::make_shared<const ShuffleShardsStage>(kShuffleShards, options)));
}

Dataset Dataset::shuffle_blocks(ShuffleBlocksOptions options) const {
  for (const auto& [name, value] : {std::pair("block", options.block), std::pair("group", options.group)}) {
    if (value >= 1 && value <= kMaxShuffled) continue;
    throw ConfigError(fmt::format("shuffle_blocks({}={}): 1 to {} are possible", name, value, kMaxShuffled));
  }
  return Dataset(add_stage(plan_, std::make_shared<const ShuffleBlocksStage>(kShuffleBlocks, options)));
}

StageCall shuffle_call() {
  return stage_call<ShuffleOptions,
                    [](const Dataset& data, ShuffleOptions options) { return data.shuffle(options); }>(kShuffle);
}

StageCall shuffle_window_call() {
  return stage_call<ShuffleWindowOptions, [](const Dataset& data, ShuffleWindowOptions options) {
    return data.shuffle_window(options);
  }>(kShuffleWindow);
}

StageCall shuffle_shards_call() {
  return stage_call<ShuffleShardsOptions, [](const Dataset& data, ShuffleShardsOptions options) {
    return data.shuffle_shards(options);
  }>(kShuffleShards);
}

StageCall shuffle_blocks_call() {
  return stage_call<ShuffleBlocksOptions, [](const Dataset& data, ShuffleBlocksOptions options) {
    return data.shuffle_blocks(options);
  }>(kShuffleBlocks);
}

}  // namespace headrace
