// The host's side of a batch in flight: what it sends to the devices and gets back.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/devices/buffer.h"
#include "headrace/devices/event.h"
#include "headrace/devices/kernels.h"
#include "headrace/pipeline/batch.h"

namespace headrace {

// One shard of the batch. Pointers point into `pinned`. Written by the host before the batch is submitted, then by
// the stream until `done`.
struct ShardSlot {
  static constexpr std::int64_t kNotRun = -1;  // in the first of the totals' examples: the stream skipped the work

  // Returns whether totals and results are valid. REQUIRES: `done` is complete.
  bool succeeded() const noexcept { return first_sums().examples != kNotRun && *failed == 0; }

  MetricSums& first_sums() const noexcept { return *reinterpret_cast<MetricSums*>(totals); }

  int replica = 0;
  Buffer pinned = {};
  StepScalars* scalars = nullptr;
  float* group_scale = nullptr;  // right after the scalars
  // An objective's totals of all batches since the last reset, this one included, and class numbers; null when
  // predicting.
  std::byte* totals = nullptr;
  std::byte* labels = nullptr;
  float* result = nullptr;          // null unless predicting
  std::uint32_t* failed = nullptr;  // not 0 if work before this batch has failed (Stream::failure_word())
  // Timed: the shard's stream begins this batch, the batch has arrived, the replica's stream has done all of it.
  std::unique_ptr<Event> begin = nullptr, arrived = nullptr, done = nullptr;
  bool idle = true;     // perhaps, before it: `begin` was recorded; else it begins where the last one ends
  bool waited = false;  // for the batch to arrive: `arrived` was recorded
  std::uint64_t submitted_ns = 0;  // host time of `begin`'s submission

  std::int64_t examples = 0;
  std::vector<std::uint64_t> records = {};
};

struct StepSlot {
  std::vector<ShardSlot> shards;
  bool pending = false;
  std::uint64_t step = 0;  // the model's
  BatchPosition position;
  // Host times between which next() waited for it.
  std::uint64_t asked_ns = 0, taken_ns = 0;
  bool restarted = false;  // the first since times were reset
};

}  // namespace headrace
