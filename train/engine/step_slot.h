// What the host gives to one submitted batch and gets back from it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/devices/buffer.h"
#include "headrace/devices/event.h"
#include "headrace/devices/kernels.h"
#include "headrace/pipeline/batch.h"

namespace headrace {

// Pointers go into `pinned`. Written by the host before the batch is submitted, by the stream until `done`.
struct ReplicaSlot {
  static constexpr std::int64_t kNotRun = -1;  // in sums->examples: the stream skipped the work

  Buffer pinned = {};
  StepScalars* scalars = nullptr;
  float* group_scale = nullptr;    // VariableLayout::kAlignment times the same number
  MetricSums* sums = nullptr;      // of all batches since the last reset, this one included
  std::int64_t* labels = nullptr;  // null without a loss
  float* result = nullptr;         // null unless predicting
  std::unique_ptr<Event> done = nullptr;

  std::int64_t examples = 0;
  std::vector<std::uint64_t> records = {};
};

struct StepSlot {
  std::vector<ReplicaSlot> replicas;
  bool pending = false;
  std::uint64_t step = 0;  // the model's
  BatchPosition position;
};

}  // namespace headrace
