// Start here. A Dataset is an immutable plan: every call returns a new one, nothing is read until a Loader
// runs it. Stages may be written in any sensible order; the planner moves index operations before decoding.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/cache/memory_cache.h"
#include "headrace/pipeline/operation.h"
#include "headrace/pipeline/source.h"

namespace headrace {

struct ShuffleOptions {
  std::uint64_t seed = 0;        // mixed with the loader's seed
  bool each_epoch_anew = true;   // false: the same order every epoch
};

enum class Remainder {
  kKeep,  // the last batch of an epoch may be smaller
  kDrop,
};

struct BatchOptions {
  std::int64_t global = 32;  // examples over all replicas
  Remainder remainder = Remainder::kKeep;
};

// A memory cache for .cache(): shared by all loaders of the plan, so later fits find it warm.
std::shared_ptr<MemoryCache> memory(std::uint64_t budget_bytes = 0);

// One stage of a plan; see plan.h.
struct PlanNode;
using PlanPtr = std::shared_ptr<const PlanNode>;

class Dataset {
 public:
  static Dataset from(SourcePtr source);

  Dataset decode() const;                       // JPEG / PNG -> u8 (H, W, 3)
  Dataset map(const Operations& operations) const;  // mixup() and cutmix() after .batch(), all others before
  Dataset shuffle(ShuffleOptions options = {}) const;  // a full-epoch permutation, O(1) memory
  Dataset repeat(std::int64_t times) const;     // an epoch becomes `times` passes, each shuffled anew
  Dataset take(std::uint64_t count) const;
  Dataset skip(std::uint64_t count) const;
  Dataset shard(std::uint64_t count, std::uint64_t index) const;  // every count-th record from index on
  Dataset without_shard(std::uint64_t count, std::uint64_t index) const;  // all the others
  Dataset cache(std::shared_ptr<MemoryCache> cache) const;  // what follows must be able to come after it
  Dataset batch(BatchOptions options) const;
  Dataset prefetch(int batches) const;          // batches in flight ahead of the consumer

  // The plan after push-down, one stage a line. Throws ConfigError where the plan makes no sense.
  std::string explain() const;

  // Records in one epoch.
  std::uint64_t size() const;
  // Batches in one epoch; ConfigError before .batch().
  std::uint64_t steps_per_epoch() const;
  // Fields of one sample after all operations.
  Fields fields() const;
  // Class names where the source has them.
  std::vector<std::string> classes() const;
  // Identity of the stream: source, operations with versions and parameters, decoder. Not of thread counts.
  std::uint64_t fingerprint() const;

  const PlanPtr& plan() const noexcept { return plan_; }

 private:
  explicit Dataset(PlanPtr plan) : plan_(std::move(plan)) {}

  PlanPtr plan_;
};

}  // namespace headrace
