#include "headrace/pipeline/plan/index/index_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/devices/base/check.h"
#include "headrace/devices/base/checked_size.h"
#include "headrace/devices/base/error.h"
#include "headrace/pipeline/plan/index/combined_map.h"
#include "headrace/pipeline/plan/index/selection.h"

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
    const auto repeated = checked_product({size_, repeat->times});
    if (!repeated) {
      throw ConfigError(fmt::format("repeat({}) of {} records is more than can be counted", repeat->times, size_),
                        "repeat fewer times, or ask the loader for more epochs");
    }
    size_ = *repeated;
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
    HEADRACE_CHECK(add_other(stage, seed, step), "not an index stage: " + describe(stage));
  }
  steps_.push_back(std::move(step));
}

bool IndexMap::add_other(const Stage& stage, std::uint64_t seed, Step& step) {
  if (const auto* filter = std::get_if<FilterStage>(&stage)) {
    step.kind = Kind::kFilter;
    step.kept = &filter->selection->kept();
    step.owner = filter->selection;
    size_ = step.kept->count();
  } else if (const auto* window = std::get_if<ShuffleWindowStage>(&stage)) {
    step.kind = Kind::kShuffleWindow;
    step.amount = window->options.size;
    step.key = mix_seed(mix_seed(seed, window->options.seed), steps_.size());
    step.each_pass_anew = window->options.each_epoch_anew;
  } else if (const auto* files = std::get_if<ShardFilesStage>(&stage)) {
    step.kind = Kind::kRanges;
    size_ = 0;
    for (const auto& [first, end] : files->ranges) {
      if (first == end) continue;
      step.ranges.emplace_back(size_, first);
      size_ += end - first;
    }
  } else if (const auto* combine = std::get_if<CombineStage>(&stage)) {
    HEADRACE_CHECK(steps_.empty(), "datasets are combined before anything else");
    step.kind = Kind::kCombine;
    step.combined = std::make_shared<const CombinedMap>(*combine->combination, seed);
    size_ = step.combined->size();
  } else {
    return false;
  }
  return true;
}

IndexCursor::IndexCursor(const IndexMap& map) : map_(&map), keyed_(map.steps_.size()) {
  for (std::size_t i = 0; i < keyed_.size(); ++i) {
    const IndexMap::Step& step = map.steps_[i];
    if (step.kind == IndexMap::Kind::kCombine) combined_ = std::make_unique<CombinedCursor>(*step.combined);
  }
}

IndexCursor::IndexCursor(IndexCursor&&) noexcept = default;
IndexCursor& IndexCursor::operator=(IndexCursor&&) noexcept = default;
IndexCursor::~IndexCursor() = default;

const Permutation& IndexCursor::shuffle_of(std::size_t i, std::uint64_t pass) {
  const IndexMap::Step& step = map_->steps_[i];
  Keyed& keyed = keyed_[i];
  const std::uint64_t keyed_pass = step.each_pass_anew ? pass : 0;
  if (keyed.pass != keyed_pass) {
    keyed = {.permutation = {step.size_before, mix_seed(step.key, keyed_pass)}, .pass = keyed_pass};
  }
  return keyed.permutation;
}

std::uint64_t IndexCursor::shuffled_in_window(std::size_t i, std::uint64_t pass, std::uint64_t position) {
  const IndexMap::Step& step = map_->steps_[i];
  Keyed& keyed = keyed_[i];
  const std::uint64_t window = position / step.amount, first = window * step.amount;
  const std::uint64_t keyed_pass = step.each_pass_anew ? pass : 0;
  if (keyed.window != window || keyed.pass != keyed_pass) {
    const std::uint64_t key = mix_seed(mix_seed(step.key, keyed_pass), window);
    keyed = {.permutation = {std::min(step.amount, step.size_before - first), key},
             .pass = keyed_pass,
             .window = window};
  }
  return first + keyed.permutation(position - first);
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
      case IndexMap::Kind::kShuffle: position = shuffle_of(i, pass)(position); break;
      case IndexMap::Kind::kFilter: position = step.kept->select(position); break;
      case IndexMap::Kind::kShuffleWindow: position = shuffled_in_window(i, pass, position); break;
      case IndexMap::Kind::kRanges: {
        const auto after = std::upper_bound(step.ranges.begin(), step.ranges.end(), position,
                                            [](std::uint64_t at, const auto& range) { return at < range.first; });
        position = position - (after - 1)->first + (after - 1)->second;
        break;
      }
      case IndexMap::Kind::kCombine: return combined_->locate(pass, position);
    }
  }
  return {.record = position, .pass = pass};
}

}  // namespace headrace
