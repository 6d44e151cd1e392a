#include "headrace/pipeline/plan/index/batch_schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/devices/base/checked_size.h"
#include "headrace/devices/base/error.h"

namespace headrace {

BatchSchedule::BatchSchedule(const StreamPlan& plan, std::uint64_t seed, std::uint64_t epochs)
    : plan_(plan),
      seed_(seed),
      map_(plan.index_map(seed)),
      cursor_(map_),
      global_(static_cast<std::uint64_t>(plan.batch->global)),
      size_(map_.size()),
      steps_(plan.steps_per_epoch(size_)),
      epochs_(epochs),
      last_step_(steps_ - 1) {
  if (!checked_product({epochs_, map_.size()})) {
    throw ConfigError(
        fmt::format("epochs = {} of {} examples each are more than can be counted", epochs_, map_.size()),
        "train for fewer epochs");
  }
}

void BatchSchedule::end_at(std::uint64_t records) {
  map_ = IndexMap(records, plan_.index_stages, seed_);
  cursor_ = IndexCursor(map_);
  last_step_ = plan_.steps_per_epoch(map_.size()) - 1;
}

bool BatchSchedule::holds(std::uint64_t records, std::uint64_t sequence) const {
  const std::uint64_t next = (sequence + 1) * global_;  // the first position after it
  const std::uint64_t end = std::min(next, size_);
  if (map_.last_record(end - 1) >= records) return false;
  return end == size_ || map_.needed_record(next) < records;
}

std::uint64_t BatchSchedule::batches_of(std::uint64_t records) const {
  return plan_.steps_per_epoch(IndexMap(records, plan_.index_stages, seed_).size());
}

BatchPosition BatchSchedule::position(std::uint64_t sequence) const noexcept {
  const std::uint64_t step = sequence % steps_;
  return {.epoch = sequence / steps_,
          .step = step,
          .sequence = sequence,
          .global_examples = static_cast<std::int64_t>(std::min(global_, map_.size() - step * global_)),
          .last_of_epoch = step == last_step_};
}

void BatchSchedule::locate(const BatchPosition& position, std::span<std::uint64_t> records,
                           std::span<std::uint64_t> passes) {
  const std::uint64_t first = position.step * global_ + static_cast<std::uint64_t>(position.first_row);
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Located located = cursor_.locate(position.epoch, first + i);
    records[i] = located.record;
    passes[i] = located.pass;
  }
}

Located BatchSchedule::locate(const BatchPosition& position, std::int64_t example) {
  return cursor_.locate(position.epoch, position.step * global_ + static_cast<std::uint64_t>(example));
}

Located BatchSchedule::draw(std::uint64_t epoch, Philox& random) const {
  const std::uint64_t high = random.next_u32();
  return IndexCursor(map_).locate(epoch, (high << 32 | random.next_u32()) % map_.size());
}

}  // namespace headrace
