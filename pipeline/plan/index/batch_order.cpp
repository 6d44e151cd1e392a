#include "headrace/pipeline/plan/index/batch_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/rng.h"
#include "headrace/devices/base/sizes.h"

namespace headrace {
namespace {

// Two shuffles with one seed, of records and of batches, differ.
constexpr std::uint64_t kBatchKey = 0xBA7C;

bool is_repeat(const Stage& stage) { return std::holds_alternative<RepeatStage>(stage); }

// Returns whether the stages may put another batch after a smaller one.
bool may_follow_smaller(const std::vector<Stage>& stages) {
  return is_shuffled(stages) || std::ranges::any_of(stages, [](const Stage& stage) {
           return is_repeat(stage) || std::holds_alternative<CombineStage>(stage) ||
                  std::holds_alternative<SelectStage>(stage);
         });
}

bool chooses_anew(const std::vector<Stage>& stages);

// Returns whether another choice of the parts' batches may be combined in each epoch.
bool combines_anew(const Combination& numbers) {
  const auto* mix = std::get_if<MixOptions>(&numbers.how);
  const bool in_part = mix != nullptr && !mix->weights.empty();  // some batches of a part, or some more often
  return std::ranges::any_of(numbers.parts, [&](const CombinedPart& part) {
    return chooses_anew(part.stages) || (in_part && is_shuffled(part.stages));
  });
}

// Returns whether batches are chosen after a shuffle.
bool chooses_anew(const std::vector<Stage>& stages) {
  bool shuffled = false;
  for (const Stage& stage : stages) {
    const auto* combine = std::get_if<CombineStage>(&stage);
    if (combine != nullptr && combines_anew(*combine->combination)) return true;
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

// Returns the examples that an epoch's batches lack to be full.
std::uint64_t count_missing(const IndexMap& batches, const BatchRows& rows) {
  const IndexCursor cursor(batches);
  std::uint64_t missing = 0;
  for (std::uint64_t step = 0; step < batches.size(); ++step) {
    missing += rows.full() - rows.examples_of(cursor.locate(0, step).record);
  }
  return missing;
}

// Without trailing repeats, which multiply whatever is before them.
std::uint64_t count_missing(const BatchRows& rows, std::span<const Stage> stages, std::uint64_t seed) {
  if (!stages.empty() && is_repeat(stages.back())) {
    return std::get<RepeatStage>(stages.back()).times * count_missing(rows, stages.first(stages.size() - 1), seed);
  }
  return count_missing(batch_map(rows.count(), {stages.begin(), stages.end()}, seed), rows);
}

}  // namespace

IndexMap batch_map(std::uint64_t batches, const std::vector<Stage>& stages, std::uint64_t seed) {
  return IndexMap(batches, stages, mix_seed(seed, kBatchKey));
}

std::uint64_t count_examples(const BatchRows& rows, const std::vector<Stage>& stages, std::uint64_t seed) {
  const std::uint64_t examples = checked_examples(batch_map(rows.count(), stages, seed).size(), rows.full());
  return rows.even() ? examples : examples - count_missing(rows, stages, seed);
}

bool may_scan(const BatchOrder& order) {
  if (order.combined != nullptr) return true;
  return !order.batch.drop_remainder && may_follow_smaller(order.stages);
}

BatchOrderIndex::BatchOrderIndex(std::uint64_t before, const BatchOrder& order, std::uint64_t seed)
    : BatchOrderIndex(order.combined != nullptr ? BatchRows(*order.combined) : BatchRows(before, order.batch),
                      order, stages_on_batches(order.combined.get(), order.stages), seed) {}

BatchOrderIndex::BatchOrderIndex(BatchRows rows, const BatchOrder& order, const std::vector<Stage>& stages,
                                 std::uint64_t seed)
    : rows_(std::move(rows)),
      full_(rows_.full()),
      drops_(order.batch.drop_remainder),
      batches_(batch_map(rows_.count(), stages, seed)),
      uneven_(may_follow_smaller(stages) && !rows_.even()),
      shuffled_(is_shuffled(stages)) {
  if (uneven_ && chooses_anew(stages)) {
    throw ConfigError(
        fmt::format("{}: {}, and whether it is among those chosen changes with the shuffle",
                    describe(Stage{BatchOrderStage{std::make_shared<BatchOrder>(order)}}), describe_smaller()),
        order.combined != nullptr ? "unbatch() each dataset and combine their records"
                                  : "drop the remainder, or choose batches before they are shuffled");
  }
  if (may_follow_smaller(stages)) {
    size_ = count_examples(rows_, stages, seed);
    return;
  }
  // Batches keep their order: the smaller one, if it was chosen, ends the epoch.
  size_ = checked_examples(batches_.size(), full_);
  if (batches_.size() == 0) return;
  size_ -= full_ - rows_.examples_of(IndexCursor(batches_).locate(0, batches_.size() - 1).record);
}

// For messages.
std::string BatchOrderIndex::describe_smaller() const {
  const std::uint64_t last = rows_.count() - 1, rest = rows_.examples_of(last);
  if (rest < full_) return fmt::format("the last of the batches has {} examples", rest);
  return fmt::format("a batch has fewer than {} examples", full_);
}

std::unique_ptr<IndexMemory> BatchOrderIndex::create_memory() const { return std::make_unique<Memory>(batches_); }

void BatchOrderIndex::find_smaller(std::uint64_t pass, Memory& memory) const {
  memory.pass = pass;
  memory.smaller.clear();
  std::uint64_t missing = 0;
  for (std::uint64_t batch = 0; batch < batches_.size(); ++batch) {
    const std::uint64_t examples = rows_.examples_of(memory.cursor.locate(pass, batch).record);
    if (examples == full_) continue;
    missing += full_ - examples;
    memory.smaller.push_back({.end = (batch + 1) * full_ - missing, .missing = missing});
  }
}

Located BatchOrderIndex::locate(const Located& at, IndexMemory* memory) const {
  auto& order = static_cast<Memory&>(*memory);
  std::uint64_t position = at.record;  // as if all batches were full
  if (uneven_) {
    const std::uint64_t pass = shuffled_ ? at.pass : 0;
    if (order.pass != pass) find_smaller(pass, order);
    const auto later = std::ranges::upper_bound(order.smaller, at.record, {}, &Smaller::end);
    if (later != order.smaller.begin()) position += (later - 1)->missing;
  }
  const Located batch = order.cursor.locate(at.pass, position / full_);
  return {.record = rows_.first_of(batch.record) + position % full_, .pass = batch.pass};
}

std::uint64_t BatchOrderIndex::kept(std::uint64_t position) const {
  return rows_.first_of(batches_.first_record(position / full_)) + position % full_;
}

std::uint64_t BatchOrderIndex::needed_before(std::uint64_t position) const {
  const std::uint64_t batch = batches_.needed_record(position / full_);
  return rows_.first_of(batch) + (drops_ ? full_ - 1 : position % full_);
}

}  // namespace headrace
