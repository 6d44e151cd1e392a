// What a Dataset is made of: a chain of stages, newest first, shared between the datasets that grew from it.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "headrace/pipeline/dataset.h"

namespace headrace {

struct SourceStage {
  SourcePtr source;
};
struct DecodeStage {};
struct MapStage {
  std::vector<Operation> operations;
};
struct ShuffleStage {
  ShuffleOptions options;
};
struct RepeatStage {
  std::uint64_t times = 1;
};
struct TakeStage {
  std::uint64_t count = 0;
};
struct SkipStage {
  std::uint64_t count = 0;
};
struct ShardStage {
  std::uint64_t count = 1;
  std::uint64_t index = 0;
};
struct WithoutShardStage {
  std::uint64_t count = 2;
  std::uint64_t index = 0;
};
struct CacheStage {
  std::shared_ptr<MemoryCache> cache;
};
struct BatchStage {
  BatchOptions options;
};
struct PrefetchStage {
  int batches = 2;
};

using Stage = std::variant<SourceStage, DecodeStage, MapStage, ShuffleStage, RepeatStage, TakeStage, SkipStage,
                           ShardStage, WithoutShardStage, CacheStage, BatchStage, PrefetchStage>;

// Immutable. The first node of a chain holds a SourceStage and no other does.
struct PlanNode {
  PlanPtr before;
  Stage stage;
};

// The stages in the order they were written, the source first.
std::vector<Stage> stages_of(const PlanPtr& plan);

// "shuffle(seed=7)": a stage as explain() shows it and as fingerprints see it.
std::string describe(const Stage& stage);

}  // namespace headrace
