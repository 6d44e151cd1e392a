#include "headrace/pipeline/plan/index/batch_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <variant>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/rng.h"
#include "headrace/devices/base/sizes.h"
#include "headrace/pipeline/plan/index/combination_index.h"

namespace headrace {
namespace {

// Two shuffles with one seed, of records and of batches, differ.
constexpr std::uint64_t kBatchKey = 0xBA7C;

// Returns whether the stages may put another batch after a smaller one.
bool may_follow_smaller(const std::vector<StagePtr>& stages) {
  return !std::ranges::all_of(stages, [](const StagePtr& stage) { return stage->traits().keeps_order; });
}

bool chooses_anew(const std::vector<StagePtr>& stages);

// Returns whether another choice of the parts' batches may be combined in each epoch.
bool combines_anew(const Combination& numbers) {
  const auto* mix = std::get_if<MixOptions>(&numbers.how);
  const bool in_part = mix != nullptr && !mix->weights.empty();  // some batches of a part, or some more often
  return std::ranges::any_of(numbers.parts, [&](const CombinedPart& part) {
    return chooses_anew(part.stages) || (in_part && is_shuffled(part.stages));
  });
}

// Returns whether batches are chosen after a shuffle.
bool chooses_anew(const std::vector<StagePtr>& stages) {
  bool shuffled = false;
  for (const StagePtr& stage : stages) {
    const auto* combine = dynamic_cast<const CombineStage*>(stage.get());
    if (combine != nullptr && combines_anew(combine->combination())) return true;
    const StageTraits traits = stage->traits();
    if (shuffled && !traits.shuffles && traits.times == 0) return true;
    shuffled = shuffled || traits.shuffles;
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
std::uint64_t count_missing(const BatchRows& rows, std::span<const StagePtr> stages, std::uint64_t seed) {
  if (!stages.empty() && stages.back()->traits().times > 0) {
    return stages.back()->traits().times * count_missing(rows, stages.first(stages.size() - 1), seed);
  }
  return count_missing(batch_map(rows.count(), {stages.begin(), stages.end()}, seed), rows);
}

}  // namespace

IndexMap batch_map(std::uint64_t batches, const std::vector<StagePtr>& stages, std::uint64_t seed) {
  return IndexMap(batches, stages, mix_seed(seed, kBatchKey));
}

std::uint64_t count_examples(const BatchRows& rows, const std::vector<StagePtr>& stages, std::uint64_t seed) {
  const std::uint64_t examples = checked_examples(batch_map(rows.count(), stages, seed).size(), rows.full());
  return rows.even() ? examples : examples - count_missing(rows, stages, seed);
}

namespace {

class BatchOrderIndex final : public IndexStage {
 public:
  // `batch_stages` are all stages on the numbers of the batches, whose rows are `rows`. Throws ConfigError if a
  // smaller batch is among the chosen ones in some epochs only; `stage` describes it for the message.
  BatchOrderIndex(BatchRows rows, const std::vector<StagePtr>& batch_stages, bool drops, bool combined,
                  std::uint64_t seed, const BatchOrderStage& stage);

  std::uint64_t size() const noexcept override { return size_; }
  // If batches are shuffled, repeated or combined and one is smaller, each new pass looks at the numbers of all.
  Located locate(const Located& at, IndexMemory* memory) const override;
  std::uint64_t last_before(std::uint64_t position) const override { return kept(position); }
  std::uint64_t first_before(std::uint64_t position) const override { return kept(position); }
  std::uint64_t needed_before(std::uint64_t position) const override;
  std::unique_ptr<IndexMemory> create_memory() const override;

 private:
  // A smaller batch.
  struct Smaller {
    std::uint64_t end = 0;      // in positions of this stage
    std::uint64_t missing = 0;  // examples that it and those before it lack
  };
  struct Memory final : IndexMemory {
    explicit Memory(const IndexMap& batches) : cursor(batches) {}

    IndexCursor cursor;
    std::uint64_t pass = ~std::uint64_t{0};  // of `smaller`; none yet
    std::vector<Smaller> smaller;
  };

  std::string describe_smaller() const;
  void find_smaller(std::uint64_t pass, Memory& memory) const;
  // Returns the preceding position of a stream, where batches keep their order.
  std::uint64_t kept(std::uint64_t position) const;

  BatchRows rows_;
  std::uint64_t full_;  // examples of a full batch
  bool drops_;
  IndexMap batches_;
  bool uneven_;  // whether a smaller batch may be followed by others
  bool shuffled_;
  std::uint64_t size_ = 0;
};

BatchOrderIndex::BatchOrderIndex(BatchRows rows, const std::vector<StagePtr>& batch_stages, bool drops,
                                 bool combined, std::uint64_t seed, const BatchOrderStage& stage)
    : rows_(std::move(rows)),
      full_(rows_.full()),
      drops_(drops),
      batches_(batch_map(rows_.count(), batch_stages, seed)),
      uneven_(may_follow_smaller(batch_stages) && !rows_.even()),
      shuffled_(is_shuffled(batch_stages)) {
  if (uneven_ && chooses_anew(batch_stages)) {
    throw ConfigError(fmt::format("{}: {}, and whether it is among those chosen changes with the shuffle",
                                  stage.describe(), describe_smaller()),
                      combined ? "unbatch() each dataset and combine their records"
                               : "drop the remainder, or choose batches before they are shuffled");
  }
  if (may_follow_smaller(batch_stages)) {
    size_ = count_examples(rows_, batch_stages, seed);
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

}  // namespace

std::string BatchOrderStage::describe() const {
  std::string text = combined_ == nullptr ? described("batch", batch_) : "batches";
  for (const StagePtr& stage : stages_) text += " | " + stage->describe();
  return text + " | unbatch()";
}

StageTraits BatchOrderStage::traits() const {
  return {.shuffles = is_shuffled(stages_), .repeats = renumbers(stages_)};
}

Indexed BatchOrderStage::index(const StageInput& before) const {
  BatchRows rows = combined_ != nullptr ? BatchRows(*combined_) : BatchRows(before.positions, batch_);
  auto stage =
      std::make_shared<const BatchOrderIndex>(std::move(rows), stages_on_batches(combined_.get(), stages_),
                                              batch_.drop_remainder, combined_ != nullptr, before.key(), *this);
  return {.positions = stage->size(), .stage = stage};
}

// A smaller batch may stand between others.
std::string BatchOrderStage::cost() const {
  const bool scans = combined_ != nullptr || (!batch_.drop_remainder && may_follow_smaller(stages_));
  if (!scans) return {};
  return fmt::format("a pass first looks at all batches' numbers if {} batch is smaller",
                     combined_ != nullptr ? "a" : "the last");
}

}  // namespace headrace
