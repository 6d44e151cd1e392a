// A worker's part: every count-th position from one on.
#pragma once

#include <cstdint>

#include "headrace/pipeline/plan/index/index_stage.h"
#include "headrace/pipeline/plan/plan.h"

namespace headrace {

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

}  // namespace headrace
