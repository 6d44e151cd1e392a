#include "headrace/pipeline/plan/index/index_map.h"

#include <algorithm>

#include "headrace/devices/base/check.h"
#include "headrace/pipeline/plan/index/combination_index.h"
#include "headrace/pipeline/plan/index/filter_index.h"
#include "headrace/pipeline/plan/index/repeat_index.h"
#include "headrace/pipeline/plan/index/shard_files_index.h"
#include "headrace/pipeline/plan/index/shard_index.h"
#include "headrace/pipeline/plan/index/shuffle_index.h"
#include "headrace/pipeline/plan/index/shuffle_window_index.h"
#include "headrace/pipeline/plan/index/skip_index.h"
#include "headrace/pipeline/plan/index/without_shard_index.h"

namespace headrace {

IndexMap::IndexMap(std::uint64_t records, const std::vector<Stage>& stages, std::uint64_t seed) : size_(records) {
  for (const Stage& stage : stages) {
    if (const auto* take = std::get_if<TakeStage>(&stage)) {  // positions stay as they are
      size_ = std::min(size_, take->count);
      continue;
    }
    stages_.push_back(create_stage(stage, seed));
    size_ = stages_.back()->size();
  }
}

std::uint64_t IndexMap::walk(std::uint64_t (IndexStage::*before)(std::uint64_t) const,
                             std::uint64_t position) const {
  for (std::size_t i = stages_.size(); i-- > 0;) position = ((*stages_[i]).*before)(position);
  return position;
}

IndexStagePtr IndexMap::create_stage(const Stage& stage, std::uint64_t seed) const {
  // The place in the chain keeps two shuffles with one seed apart.
  const auto key = [&](std::uint64_t own) { return mix_seed(mix_seed(seed, own), stages_.size()); };
  if (const auto* shuffle = std::get_if<ShuffleStage>(&stage)) {
    return std::make_shared<ShuffleIndex>(size_, shuffle->options, key(shuffle->options.seed));
  }
  if (const auto* window = std::get_if<ShuffleWindowStage>(&stage)) {
    return std::make_shared<ShuffleWindowIndex>(size_, window->options, key(window->options.seed));
  }
  if (const auto* repeat = std::get_if<RepeatStage>(&stage))
    return std::make_shared<RepeatIndex>(size_, repeat->times);
  if (const auto* skip = std::get_if<SkipStage>(&stage)) return std::make_shared<SkipIndex>(size_, skip->count);
  if (const auto* shard = std::get_if<ShardStage>(&stage)) return std::make_shared<ShardIndex>(size_, *shard);
  if (const auto* others = std::get_if<WithoutShardStage>(&stage)) {
    return std::make_shared<WithoutShardIndex>(size_, *others);
  }
  if (const auto* files = std::get_if<ShardFilesStage>(&stage)) return std::make_shared<ShardFilesIndex>(*files);
  if (const auto* filter = std::get_if<FilterStage>(&stage)) return std::make_shared<FilterIndex>(*filter);
  const auto* combine = std::get_if<CombineStage>(&stage);
  HEADRACE_CHECK(combine != nullptr, "not an index stage: " + describe(stage));
  HEADRACE_CHECK(stages_.empty(), "datasets are combined before anything else");
  return std::make_shared<CombinationIndex>(*combine->combination, seed);
}

IndexCursor::IndexCursor(const IndexMap& map) : map_(&map) {
  for (const IndexStagePtr& stage : map.stages_) memories_.push_back(stage->create_memory());
}

}  // namespace headrace
