#include "headrace/pipeline/plan/index/batch_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "headrace/devices/base/checked_size.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/rng.h"

namespace headrace {
namespace {

// Two shuffles with one seed, of records and of batches, differ.
constexpr std::uint64_t kBatchKey = 0xBA7C;

std::uint64_t global_of(const BatchOptions& batch) { return static_cast<std::uint64_t>(batch.global); }

bool is_repeat(const Stage& stage) { return std::holds_alternative<RepeatStage>(stage); }

// Returns the examples of the last batch if they are fewer than of the others; otherwise 0.
std::uint64_t smaller_last(std::uint64_t records, const BatchOptions& batch) {
  return batch.remainder == Remainder::kDrop ? 0 : records % global_of(batch);
}

// Returns whether the stages may put another batch after the last one.
bool may_follow_last(const std::vector<Stage>& stages) {
  return is_shuffled(stages) || std::ranges::any_of(stages, is_repeat);
}

// Returns whether batches are chosen after a shuffle.
bool chooses_anew(const std::vector<Stage>& stages) {
  bool shuffled = false;
  for (const Stage& stage : stages) {
    const bool now = is_shuffled(stage);
    if (shuffled && !now && !is_repeat(stage)) return true;
    shuffled = shuffled || now;
  }
  return false;
}

std::uint64_t checked_examples(std::uint64_t batches, std::uint64_t global) {
  if (const auto all = checked_product({batches, global})) return *all;
  throw ConfigError(fmt::format("{} batches of {} are more examples than can be counted", batches, global),
                    "repeat fewer times, or ask the loader for more epochs");
}

// Returns how many of an epoch's batches are batch `last`.
std::uint64_t count_last(const IndexMap& batches, std::uint64_t last) {
  const IndexCursor cursor(batches);
  std::uint64_t count = 0;
  for (std::uint64_t step = 0; step < batches.size(); ++step) count += cursor.locate(0, step).record == last;
  return count;
}

// Without trailing repeats, which multiply whatever is before them.
std::uint64_t count_last(std::uint64_t all, std::span<const Stage> stages, std::uint64_t seed) {
  if (!stages.empty() && is_repeat(stages.back())) {
    return std::get<RepeatStage>(stages.back()).times * count_last(all, stages.first(stages.size() - 1), seed);
  }
  return count_last(batch_map(all, {stages.begin(), stages.end()}, seed), all - 1);
}

}  // namespace

std::uint64_t count_batches(std::uint64_t records, const BatchOptions& batch) {
  const std::uint64_t global = global_of(batch);
  return records / global + (smaller_last(records, batch) != 0);
}

IndexMap batch_map(std::uint64_t batches, const std::vector<Stage>& stages, std::uint64_t seed) {
  return IndexMap(batches, stages, mix_seed(seed, kBatchKey));
}

std::uint64_t count_examples(std::uint64_t records, const BatchOptions& batch, const std::vector<Stage>& stages,
                             std::uint64_t seed) {
  const std::uint64_t all = count_batches(records, batch);
  const std::uint64_t examples = checked_examples(batch_map(all, stages, seed).size(), global_of(batch));
  const std::uint64_t rest = smaller_last(records, batch);
  return rest == 0 ? examples : examples - count_last(all, stages, seed) * (global_of(batch) - rest);
}

bool may_scan(const BatchOrder& order) {
  return order.batch.remainder == Remainder::kKeep && may_follow_last(order.stages);
}

BatchOrderIndex::BatchOrderIndex(std::uint64_t before, const BatchOrder& order, std::uint64_t seed)
    : global_(global_of(order.batch)),
      drops_(order.batch.remainder == Remainder::kDrop),
      batches_(batch_map(count_batches(before, order.batch), order.stages, seed)),
      last_(count_batches(before, order.batch) - 1),
      rest_(may_follow_last(order.stages) ? smaller_last(before, order.batch) : 0),
      shuffled_(is_shuffled(order.stages)) {
  if (rest_ > 0 && chooses_anew(order.stages)) {
    throw ConfigError(fmt::format("{}: the last of the batches has {} examples, and whether it is among those "
                                  "chosen changes with the shuffle",
                                  describe(Stage{BatchOrderStage{std::make_shared<BatchOrder>(order)}}), rest_),
                      "drop the remainder, or choose batches before they are shuffled");
  }
  if (may_follow_last(order.stages)) {
    size_ = count_examples(before, order.batch, order.stages, seed);
    return;
  }
  // Batches keep their order: the smaller one, if it was chosen, ends the epoch.
  size_ = checked_examples(batches_.size(), global_);
  const std::uint64_t rest = smaller_last(before, order.batch);
  if (rest == 0 || batches_.size() == 0) return;
  if (IndexCursor(batches_).locate(0, batches_.size() - 1).record == last_) size_ -= global_ - rest;
}

std::unique_ptr<IndexMemory> BatchOrderIndex::create_memory() const { return std::make_unique<Memory>(batches_); }

void BatchOrderIndex::find_smaller(std::uint64_t pass, Memory& memory) const {
  memory.pass = pass;
  memory.ends.clear();
  std::uint64_t missing = 0;
  for (std::uint64_t batch = 0; batch < batches_.size(); ++batch) {
    if (memory.cursor.locate(pass, batch).record != last_) continue;
    memory.ends.push_back(batch * global_ - missing + rest_);
    missing += global_ - rest_;
  }
}

Located BatchOrderIndex::locate(const Located& at, IndexMemory* memory) const {
  auto& order = static_cast<Memory&>(*memory);
  std::uint64_t position = at.record;  // as if all batches were full
  if (rest_ > 0) {
    const std::uint64_t pass = shuffled_ ? at.pass : 0;
    if (order.pass != pass) find_smaller(pass, order);
    const auto passed = std::ranges::upper_bound(order.ends, at.record) - order.ends.begin();
    position += static_cast<std::uint64_t>(passed) * (global_ - rest_);
  }
  const Located batch = order.cursor.locate(at.pass, position / global_);
  return {.record = batch.record * global_ + position % global_, .pass = batch.pass};
}

std::uint64_t BatchOrderIndex::kept(std::uint64_t position) const {
  return batches_.first_record(position / global_) * global_ + position % global_;
}

std::uint64_t BatchOrderIndex::needed_before(std::uint64_t position) const {
  const std::uint64_t batch = batches_.needed_record(position / global_);
  return batch * global_ + (drops_ ? global_ - 1 : position % global_);
}

}  // namespace headrace
