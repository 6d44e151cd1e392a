// The parts of a custom training loop in Python: each keeps alive what it needs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "headrace/bindings/python/callable.h"
#include "headrace/bindings/python/train/python_model.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/tensor.h"
#include "headrace/pipeline/loader.h"

namespace headrace::python {

// A global batch until a step takes it. Keeps the strategy, whose devices own its memory.
class PythonGlobalBatch {
 public:
  // `feed`: the number of the PythonFeed that it is from.
  PythonGlobalBatch(StrategyPtr strategy, std::uint64_t feed, GlobalBatch shares)
      : strategy_(std::move(strategy)),
        feed_(feed),
        position_(shares.front().position()),
        shares_(std::make_unique<std::optional<GlobalBatch>>(std::move(shares))) {}

  PythonGlobalBatch(const PythonGlobalBatch&) = delete;
  PythonGlobalBatch& operator=(const PythonGlobalBatch&) = delete;

  // Throws ConfigError once the batch was taken.
  const GlobalBatch& get() const {
    require();
    return *shares_.get();
  }
  // Also throws ConfigError unless the batch is from this feed, whose shapes a step has.
  GlobalBatch take(std::uint64_t feed) {
    require();
    if (feed_ != feed) {
      throw ConfigError("the batch is of other data than the step was made for",
                        "give batches of the distributed dataset that it was made with");
    }
    return *std::exchange(shares_.get(), std::nullopt);
  }
  bool is_taken() const { return !shares_.get(); }
  const BatchPosition& position() const noexcept { return position_; }

 private:
  void require() const {
    if (shares_.get()) return;
    throw ConfigError("this batch was given to a step", "take the next one, or read it before the step");
  }

  StrategyPtr strategy_;  // destroyed last
  std::uint64_t feed_;
  BatchPosition position_;
  OfProcess<std::optional<GlobalBatch>> shares_;
};

// A loader on the devices of a strategy. Its end waits for threads that may be in Python.
class PythonFeed {
 public:
  PythonFeed(StrategyPtr strategy, const Dataset& data, LoaderOptions options) : strategy_(std::move(strategy)) {
    Strategy& serves = strategy_->get();
    if (options.world != World{} || options.even_shares != EvenShares::kOff) {
      throw ConfigError("the strategy decides which replicas this process has, and counts every example once",
                        "leave out world_replicas, world_first and even_shares");
    }
    options.world = serves.world();
    options.owned_batches = true;  // Python keeps what it is given, in lists for example
    const WithoutGil others_run;
    loader_.set(std::make_unique<Loader>(data, serves.devices(), std::move(options)));
  }
  PythonFeed(const PythonFeed&) = delete;
  PythonFeed& operator=(const PythonFeed&) = delete;
  ~PythonFeed() {
    const WithoutGil others_run;
    loader_.reset();
  }

  Loader& loader() const { return loader_.get(); }
  const StrategyPtr& strategy() const noexcept { return strategy_; }
  // Returns a number that no other feed of this process has.
  std::uint64_t number() const noexcept { return number_; }

  // Returns null where Loader::next() does. Called without the interpreter's lock.
  std::shared_ptr<PythonGlobalBatch> next(std::optional<std::uint64_t> epoch) const {
    GlobalBatch shares;
    for (int r = 0; r < strategy_->get().local_replicas(); ++r) {
      std::optional<Batch> share = loader().next(r, epoch);
      if (!share) return nullptr;
      shares.push_back(*std::move(share));
    }
    return std::make_shared<PythonGlobalBatch>(strategy_, number_, std::move(shares));
  }

 private:
  static std::uint64_t next_number() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }

  StrategyPtr strategy_;
  std::uint64_t number_ = next_number();
  OfProcess<Loader> loader_;
};
using FeedPtr = std::shared_ptr<PythonFeed>;

// A tensor in a replica's device memory.
struct DeviceTensor {
  std::shared_ptr<const void> owner;
  TensorView view;
  int replica = 0;
};

// Throws ConfigError if this process has no such replica.
inline void require_replica(Strategy& strategy, int replica) {
  if (replica >= 0 && replica < strategy.local_replicas()) return;
  throw ConfigError("there is no replica " + std::to_string(replica) + " in this process",
                    "it has 0 to " + std::to_string(strategy.local_replicas() - 1));
}

}  // namespace headrace::python
