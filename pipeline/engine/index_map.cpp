#include "headrace/pipeline/engine/index_map.h"

#include <algorithm>

#include "headrace/devices/base/check.h"

namespace headrace {

IndexMap::IndexMap(std::uint64_t records, const std::vector<Stage>& stages, std::uint64_t seed) : size_(records) {
  for (const Stage& stage : stages) add(stage, seed);
}

void IndexMap::add(const Stage& stage, std::uint64_t seed) {
  Step step{.kind = Kind::kSkip, .size_before = size_};
  if (const auto* shuffle = std::get_if<ShuffleStage>(&stage)) {
    step.kind = Kind::kShuffle;
    // The position in the chain keeps two shuffles with one seed apart.
    step.key = mix_seed(mix_seed(seed, shuffle->options.seed), steps_.size());
    step.each_pass_anew = shuffle->options.each_epoch_anew;
  } else if (const auto* repeat = std::get_if<RepeatStage>(&stage)) {
    step.kind = Kind::kRepeat;
    step.amount = repeat->times;
    HEADRACE_CHECK(size_ == 0 || repeat->times <= ~std::uint64_t{0} / size_, "too many repetitions");
    size_ *= repeat->times;
  } else if (const auto* take = std::get_if<TakeStage>(&stage)) {
    size_ = std::min(size_, take->count);
    return;  // positions stay as they are
  } else if (const auto* skip = std::get_if<SkipStage>(&stage)) {
    step.amount = std::min(size_, skip->count);
    size_ -= step.amount;
  } else if (const auto* shard = std::get_if<ShardStage>(&stage)) {
    step.kind = Kind::kShard;
    step.amount = shard->count;
    step.index = shard->index;
    size_ = size_ > shard->index ? (size_ - shard->index - 1) / shard->count + 1 : 0;
  } else if (const auto* others = std::get_if<WithoutShardStage>(&stage)) {
    step.kind = Kind::kWithoutShard;
    step.amount = others->count;
    step.index = others->index;
    size_ -= size_ > others->index ? (size_ - others->index - 1) / others->count + 1 : 0;
  } else {
    HEADRACE_CHECK(false, "not an index stage: " + describe(stage));
  }
  steps_.push_back(step);
}

IndexCursor::IndexCursor(const IndexMap& map) : map_(&map), keyed_(map.steps_.size()) {
  for (std::size_t i = 0; i < keyed_.size(); ++i) {
    const IndexMap::Step& step = map.steps_[i];
    if (step.kind == IndexMap::Kind::kShuffle) keyed_[i].permutation = {step.size_before, mix_seed(step.key, 0)};
  }
}

Located IndexCursor::locate(std::uint64_t epoch, std::uint64_t position) {
  std::uint64_t pass = epoch;
  for (std::size_t i = keyed_.size(); i-- > 0;) {
    const IndexMap::Step& step = map_->steps_[i];
    switch (step.kind) {
      case IndexMap::Kind::kSkip: position += step.amount; break;
      case IndexMap::Kind::kShard: position = position * step.amount + step.index; break;
      case IndexMap::Kind::kWithoutShard: {  // each group of `amount` records lacks the one at `index`
        const std::uint64_t in_group = position % (step.amount - 1);
        position = position / (step.amount - 1) * step.amount + in_group + (in_group >= step.index ? 1 : 0);
        break;
      }
      case IndexMap::Kind::kRepeat:
        pass = pass * step.amount + position / step.size_before;
        position %= step.size_before;
        break;
      case IndexMap::Kind::kShuffle: {
        Keyed& keyed = keyed_[i];
        if (step.each_pass_anew && keyed.pass != pass) {
          keyed = {.permutation = {step.size_before, mix_seed(step.key, pass)}, .pass = pass};
        }
        position = keyed.permutation(position);
        break;
      }
    }
  }
  return {.record = position, .pass = pass};
}

}  // namespace headrace
