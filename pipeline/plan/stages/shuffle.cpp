// shuffle() and shuffle_window(): positions among themselves, in another order in each pass or not.
#include <algorithm>
#include <cstdint>
#include <memory>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/permutation.h"
#include "headrace/devices/base/rng.h"
#include "headrace/pipeline/dataset.h"
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

  StageTraits traits() const override { return {.shuffles = true, .orders = true, .by_number = true}; }
  Indexed index(const StageInput& before) const override {
    return {
        .positions = before.positions,
        .stage = std::make_shared<const ShuffleIndex>(before.positions, options(), before.key(options().seed))};
  }
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

class ShuffleWindowStage final : public OrderStage<ShuffleWindowOptions> {
 public:
  using OrderStage::OrderStage;

  StageTraits traits() const override {
    return {.shuffles = true, .orders = true, .by_number = true, .streams = true};
  }
  Indexed index(const StageInput& before) const override {
    return {.positions = before.positions,
            .stage = std::make_shared<const ShuffleWindowIndex>(before.positions, options(),
                                                                before.key(options().seed))};
  }
};

constexpr const char* kShuffle = "shuffle";
constexpr const char* kShuffleWindow = "shuffle_window";

}  // namespace

Dataset Dataset::shuffle(ShuffleOptions options) const {
  return Dataset(add_stage(plan_, std::make_shared<const ShuffleStage>(kShuffle, options)));
}

Dataset Dataset::shuffle_window(ShuffleWindowOptions options) const {
  if (options.size < 1) throw ConfigError("shuffle_window(0): a window has at least one position");
  return Dataset(add_stage(plan_, std::make_shared<const ShuffleWindowStage>(kShuffleWindow, options)));
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

}  // namespace headrace
