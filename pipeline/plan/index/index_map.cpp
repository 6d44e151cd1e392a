#include "headrace/pipeline/plan/index/index_map.h"

#include <utility>

namespace headrace {

IndexMap::IndexMap(std::uint64_t records, const std::vector<StagePtr>& stages, std::uint64_t seed)
    : size_(records) {
  std::uint64_t moving = 0;
  for (const StagePtr& stage : stages) {
    Indexed indexed = stage->index({.positions = size_, .seed = seed, .moving = moving});
    size_ = indexed.positions;
    if (indexed.stage == nullptr) continue;
    stages_.push_back(std::move(indexed.stage));
    if (!stage->traits().numbers) ++moving;
  }
}

std::uint64_t IndexMap::walk(std::uint64_t (IndexStage::*before)(std::uint64_t) const,
                             std::uint64_t position) const {
  for (std::size_t i = stages_.size(); i-- > 0;) position = ((*stages_[i]).*before)(position);
  return position;
}

IndexCursor::IndexCursor(const IndexMap& map) : map_(&map) {
  for (const IndexStagePtr& stage : map.stages_) memories_.push_back(stage->create_memory());
}

}  // namespace headrace
