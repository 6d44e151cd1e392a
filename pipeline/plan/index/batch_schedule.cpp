#include "headrace/pipeline/plan/index/batch_schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/devices/base/checked_size.h"
#include "headrace/devices/base/error.h"

namespace headrace {

BatchSchedule::BatchSchedule(const StreamPlan& plan, std::uint64_t seed, std::uint64_t epochs)
    : plan_(plan),
      seed_(seed),
      plain_(plan.batch_stages.empty()),
      map_(plan.index_map(seed)),
      cursor_(map_),
      batches_(plan.batch_index_map(map_.size(), seed)),
      batch_cursor_(batches_),
      global_(static_cast<std::uint64_t>(plan.batch->global)),
      size_(map_.size()),
      steps_(batches_.size()),
      epochs_(epochs),
      last_step_(steps_ - 1) {
  const std::uint64_t examples = plain_ ? size_ : steps_;
  if (!checked_product({epochs_, examples, plain_ ? 1 : global_})) {
    throw ConfigError(fmt::format("epochs = {} of {} {} each are more than can be counted", epochs_, examples,
                                  plain_ ? "examples" : "batches"),
                      "train for fewer epochs");
  }
}

void BatchSchedule::end_at(std::uint64_t records) {
  map_ = IndexMap(records, plan_.index_stages, seed_);
  cursor_ = IndexCursor(map_);
  batches_ = plan_.batch_index_map(map_.size(), seed_);
  batch_cursor_ = IndexCursor(batches_);
  last_step_ = batches_.size() - 1;
}

bool BatchSchedule::holds(std::uint64_t records, std::uint64_t sequence) const {
  const std::uint64_t after = (batches_.last_record(sequence) + 1) * global_;  // the first position after it
  if (map_.last_record(std::min(after, size_) - 1) >= records) return false;
  if (sequence + 1 >= steps_) return true;
  return map_.needed_record(batches_.needed_record(sequence + 1) * global_) < records;
}

std::uint64_t BatchSchedule::batches_of(std::uint64_t records) const {
  return plan_.batch_index_map(IndexMap(records, plan_.index_stages, seed_).size(), seed_).size();
}

BatchPosition BatchSchedule::position(std::uint64_t sequence) const {
  const std::uint64_t step = sequence % steps_, epoch = sequence / steps_;
  return {.epoch = epoch,
          .step = step,
          .sequence = sequence,
          .global_examples = static_cast<std::int64_t>(examples_of(batch_at(epoch, step).record)),
          .last_of_epoch = step == last_step_};
}

void BatchSchedule::locate(const BatchPosition& position, std::span<std::uint64_t> records,
                           std::span<std::uint64_t> passes, std::span<std::uint64_t> numbers) {
  const Located batch = batch_at(position.epoch, position.step);
  const std::uint64_t first = batch.record * global_ + static_cast<std::uint64_t>(position.first_row);
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Located located = cursor_.locate(batch.pass, first + i);
    records[i] = located.record;
    passes[i] = located.pass;
    if (!numbers.empty()) cursor_.write_numbers(numbers.data() + i * plan_.numbers);
  }
}

Located BatchSchedule::locate(const BatchPosition& position, std::int64_t example,
                              std::span<std::uint64_t> numbers) {
  const Located batch = batch_at(position.epoch, position.step);
  const Located located = cursor_.locate(batch.pass, batch.record * global_ + static_cast<std::uint64_t>(example));
  if (!numbers.empty()) cursor_.write_numbers(numbers.data());
  return located;
}

Located BatchSchedule::draw(std::uint64_t epoch, Philox& random, std::span<std::uint64_t> numbers) const {
  const auto below = [&](std::uint64_t bound) {
    const std::uint64_t high = random.next_u32();
    return (high << 32 | random.next_u32()) % bound;
  };
  Located place{.record = 0, .pass = epoch};  // a position and its pass
  if (plain_) {
    place.record = below(map_.size());
  } else {  // only of the batches that were chosen
    const Located batch = IndexCursor(batches_).locate(epoch, below(steps_));
    place = {.record = batch.record * global_ + below(examples_of(batch.record)), .pass = batch.pass};
  }
  IndexCursor cursor(map_);
  const Located located = cursor.locate(place.pass, place.record);
  if (!numbers.empty()) cursor.write_numbers(numbers.data());
  return located;
}

}  // namespace headrace
