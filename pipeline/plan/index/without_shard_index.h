// What a shard leaves: all positions but every count-th from one on.
#pragma once

#include <cstdint>

#include "headrace/pipeline/plan/index/index_stage.h"
#include "headrace/pipeline/plan/index/shard_index.h"
#include "headrace/pipeline/plan/plan.h"

namespace headrace {

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

}  // namespace headrace
