// The records of some of the source's files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "headrace/pipeline/plan/index/index_stage.h"
#include "headrace/pipeline/plan/plan.h"

namespace headrace {

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

}  // namespace headrace
