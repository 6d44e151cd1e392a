#include "headrace/train/step/step_clock.h"

#include <algorithm>
#include <utility>

#include "headrace/devices/base/clock.h"
#include "headrace/train/strategy.h"
#include "headrace/train/trainer.h"

namespace headrace {

StepClock::StepClock(const Strategy& strategy, const Shards& shards, std::shared_ptr<Trace> trace)
    : strategy_(strategy), shards_(shards), trace_(std::move(trace)) {
  for (int r = 0; r < strategy.local_replicas(); ++r) {
    start_.push_back(strategy.device(r).create_timed_event());
    if (trace_ != nullptr) rings_.push_back(&trace_->ring(strategy.device(r).info().name + " steps"));
  }
  reached_ns_.resize(start_.size());
  waited_ns_.resize(start_.size());
  summed_ns_.resize(start_.size());
  replica_times.resize(start_.size());
}

// The streams are idle: they reach the events as they are recorded, which ties the devices' clocks to the host's.
void StepClock::restart() {
  times = {};
  replica_times.assign(start_.size(), {});
  for (std::size_t r = 0; r < start_.size(); ++r) {
    strategy_.stream(static_cast<int>(r)).record(*start_[r]);
    reached_ns_[r] = static_cast<std::int64_t>(now_ns());
    Interval before;
    count_sums(r, before);
  }
}

void StepClock::add(const StepSlot& step, const StepSlot& before) {
  ++times.batches;
  for (std::size_t r = 0; r < start_.size(); ++r) {
    const auto first = static_cast<std::size_t>(shards_.first_of(static_cast<int>(r)));
    const ShardSlot& slot = step.shards[first];
    const Event& previous = step.restarted ? *start_[r] : *before.shards[first].done;
    const Event& begin = slot.idle ? *slot.begin : previous;
    const std::optional<std::int64_t> elapsed = slot.done->ns_since(previous),
                                      idle = slot.idle ? begin.ns_since(previous) : 0;
    if (!elapsed || !idle) continue;
    Interval interval{.gap = std::max<std::int64_t>(0, *idle), .elapsed = *elapsed};
    // The gap ended when the batch was submitted; the stall is the part in which the host waited for the batch.
    const auto asked = static_cast<std::int64_t>(step.asked_ns), taken = static_cast<std::int64_t>(step.taken_ns);
    const auto gap_began = static_cast<std::int64_t>(slot.submitted_ns) - interval.gap;
    interval.waiting = std::clamp<std::int64_t>(asked - gap_began, 0, interval.gap);
    interval.stall = std::clamp<std::int64_t>(taken - std::max(asked, gap_began), 0, interval.gap);
    if (slot.waited) interval.copy = slot.arrived->ns_since(begin).value_or(0);
    count_sums(r, interval);
    count(interval, times);
    count(interval, replica_times[r]);
    ++replica_times[r].batches;
    draw(r, step, interval);
  }
}

void StepClock::count(const Interval& interval, StepTimes& into) {
  into.elapsed_ns += interval.elapsed;
  into.input_stall_ns += interval.stall;
  into.idle_ns += interval.gap - interval.stall;
  into.exposed_copy_ns += interval.copy;
  into.sync_wait_ns += interval.sync;
  into.sums_ns += interval.sums;
}

// A collective that was opened after a failure counts from 0.
void StepClock::count_sums(std::size_t replica, Interval& interval) {
  const int r = static_cast<int>(replica);
  const auto since_last = [](std::int64_t now, std::int64_t& last) {
    const std::int64_t before = std::exchange(last, now);
    return now >= before ? now - before : now;
  };
  const bool apart = reducer_ != nullptr && strategy_.streams(r).sums_apart();
  const Reducer::Times sums = apart ? reducer_->times(r) : Reducer::Times{};
  interval.sums = since_last(sums.sums_ns, summed_ns_[replica]);
  interval.sync = since_last(apart ? sums.exposed_ns : strategy_.collective().waited_ns(r), waited_ns_[replica]);
}

void StepClock::draw(std::size_t replica, const StepSlot& step, const Interval& interval) {
  const std::int64_t from = reached_ns_[replica], begun = from + interval.gap, arrived = begun + interval.copy,
                     end = from + interval.elapsed;
  reached_ns_[replica] = end;
  if (rings_.empty()) return;
  std::int64_t examples = 0;
  for (const ShardSlot& slot : step.shards) {
    if (slot.replica == static_cast<int>(replica)) examples += slot.examples;
  }
  const auto span = [&](const char* name, std::int64_t first, std::int64_t last) {
    if (last <= first) return;
    rings_[replica]->add({.name = name,
                          .begin_ns = static_cast<std::uint64_t>(first),
                          .end_ns = static_cast<std::uint64_t>(last),
                          .batch = step.position.sequence,
                          .items = static_cast<std::uint64_t>(examples)});
  };
  span("input wait", from + interval.waiting, from + interval.waiting + interval.stall);
  span("copy", begun, arrived);
  span("step", arrived, end);
}

}  // namespace headrace
