#include "headrace/pipeline/plan/index/batch_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/sizes.h"

namespace headrace {
namespace {

// Returns how many passes the batches of an epoch are mixed from.
std::size_t mixed_passes(const std::vector<StagePtr>& stages) {
  std::size_t passes = 1, mixed = 1;
  for (const StagePtr& stage : stages) {
    const StageTraits traits = stage->traits();
    if (traits.times > 0) passes *= traits.times;
    if (traits.shuffles) mixed = passes;
  }
  return mixed;
}

}  // namespace

BatchSchedule::BatchSchedule(const StreamPlan& plan, std::uint64_t seed, std::uint64_t epochs,
                             const Sharing& sharing)
    : plan_(plan),
      seed_(seed),
      plain_(plan.batch_stages.empty() && plan.combined_batches == nullptr),
      map_(plan.index_map(seed)),
      cursor_(map_),
      rows_(plan.batch_rows(map_.size())),
      batches_(plan.batch_index_map(map_.size(), seed)),
      batch_cursor_(batches_),
      global_(static_cast<std::uint64_t>(plan.batch->global_batch)),
      size_(map_.size()),
      steps_(batches_.size()),
      known_(!plan.source->info().streamed),
      epochs_(epochs),
      sharing_(sharing),
      last_step_(steps_ - 1) {
  if (plan.buckets != nullptr) {
    buckets_.emplace(plan.buckets, plan.bucket_place, plan.numbers, map_.size());
    kept_passes_ = 1 + mixed_passes(plan.batch_stages);
  }
  const std::uint64_t examples = plain_ ? size_ : steps_.load();
  if (is_known() && !checked_product({epochs_, examples, plain_ ? 1 : global_})) {
    throw ConfigError(fmt::format("epochs = {} of {} {} each are more than can be counted", epochs_, examples,
                                  plain_ ? "examples" : "batches"),
                      "train for fewer epochs");
  }
}

std::uint64_t BatchSchedule::batches() const noexcept {
  if (last_step_ + 1 == 0) return 0;  // no batch
  return checked_product({steps_per_epoch(), epochs_}).value_or(std::numeric_limits<std::uint64_t>::max());
}

void BatchSchedule::end_at(std::uint64_t records) {
  map_ = IndexMap(records, plan_.index_stages, seed_);
  cursor_ = IndexCursor(map_);
  rows_ = plan_.batch_rows(map_.size());
  batches_ = plan_.batch_index_map(map_.size(), seed_);
  batch_cursor_ = IndexCursor(batches_);
  size_ = map_.size();
  last_step_ = batches_.size() - 1;
  steps_.store(std::max<std::uint64_t>(1, batches_.size()), std::memory_order_relaxed);
  known_.store(true, std::memory_order_release);
}

bool BatchSchedule::holds(std::uint64_t records, std::uint64_t sequence) const {
  if (last_record(sequence) >= records) return false;
  const std::uint64_t steps = steps_per_epoch(), step = sequence % steps;
  if (step + 1 >= steps) return true;
  return map_.needed_record(batches_.needed_record(step + 1) * global_) < records;
}

std::shared_ptr<const BucketedPass> BatchSchedule::arranged(std::uint64_t pass) const {
  if (!is_shuffled(plan_.index_stages)) pass = 0;  // in all the same
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(arranged_, pass, &Arranged::pass);
  if (found != arranged_.end()) return found->batches;
  if (arranged_.size() >= kept_passes_) arranged_.erase(arranged_.begin());
  arranged_.push_back({.pass = pass, .batches = std::make_shared<BucketedPass>(buckets_->arrange(map_, pass))});
  return arranged_.back().batches;
}

BatchPosition BatchSchedule::position(std::uint64_t sequence) const {
  const std::uint64_t steps = steps_per_epoch(), step = sequence % steps, epoch = sequence / steps;
  BatchPosition position{.epoch = epoch, .step = step, .sequence = sequence, .last_of_epoch = step == last_step_};
  const Located batch = batch_at(epoch, step);
  if (buckets_) {
    const auto batches = arranged(batch.pass);
    position.global_examples = static_cast<std::int64_t>(batches->examples_of(batch.record));
    position.bucket = batches->buckets[batch.record];
  } else {
    position.global_examples = static_cast<std::int64_t>(rows_.examples_of(batch.record));
  }
  if (sharing_.even == EvenShares::kDrop) position.global_examples -= position.global_examples % sharing_.replicas;
  position.repeats = with_repeats(position.global_examples) - position.global_examples;
  position.global_examples += position.repeats;
  return position;
}

void BatchSchedule::locate(const BatchPosition& position, std::span<std::uint64_t> records,
                           std::span<std::uint64_t> passes, std::span<std::uint64_t> numbers) {
  const Located batch = batch_at(position.epoch, position.step);
  const auto batches = buckets_ ? arranged(batch.pass) : nullptr;
  const auto before = static_cast<std::uint64_t>(position.first_row);
  const std::uint64_t first = batches ? batches->first_of(batch.record) : rows_.first_of(batch.record);
  for (std::size_t i = 0; i < records.size(); ++i) {
    const std::uint64_t place = first + place_of(before + i, position);
    const Located located = cursor_.locate(batch.pass, batches ? batches->positions[place] : place);
    records[i] = located.record;
    passes[i] = located.pass;
    if (!numbers.empty()) cursor_.write_numbers(numbers.data() + i * plan_.numbers);
  }
}

// Of a batch without buckets: those are not mixed.
Located BatchSchedule::locate(const BatchPosition& position, std::int64_t example,
                              std::span<std::uint64_t> numbers) {
  const Located batch = batch_at(position.epoch, position.step);
  const std::uint64_t place = place_of(static_cast<std::uint64_t>(example), position);
  const Located located = cursor_.locate(batch.pass, rows_.first_of(batch.record) + place);
  if (!numbers.empty()) cursor_.write_numbers(numbers.data());
  return located;
}

// A position and its pass, only of the batches that were chosen.
Located BatchSchedule::draw_place(const BatchPosition& like, Philox& random) const {
  const auto below = [&](std::uint64_t bound) {
    const std::uint64_t high = random.next_u32();
    return (high << 32 | random.next_u32()) % bound;
  };
  if (!buckets_ && plain_) return {.record = below(map_.size()), .pass = like.epoch};
  IndexCursor chosen(batches_);
  std::uint64_t step = below(steps_);
  if (!buckets_) {
    const Located batch = chosen.locate(like.epoch, step);
    return {.record = rows_.first_of(batch.record) + below(rows_.examples_of(batch.record)), .pass = batch.pass};
  }
  for (;; step = (step + 1) % steps_) {  // the batch itself is one of them
    const Located batch = chosen.locate(like.epoch, step);
    const auto batches = arranged(batch.pass);
    if (batches->buckets[batch.record] != like.bucket) continue;
    const std::uint64_t example = below(batches->examples_of(batch.record));
    return {.record = batches->positions[batches->first_of(batch.record) + example], .pass = batch.pass};
  }
}

Located BatchSchedule::draw(const BatchPosition& like, Philox& random, std::span<std::uint64_t> numbers) const {
  const Located place = draw_place(like, random);
  IndexCursor cursor(map_);
  const Located located = cursor.locate(place.pass, place.record);
  if (!numbers.empty()) cursor.write_numbers(numbers.data());
  return located;
}

}  // namespace headrace
