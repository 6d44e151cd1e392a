#include "headrace/train/step/batch_queue.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/train/model/submission.h"
#include "headrace/train/step/number_checks.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

// Waits by an event, which leaves the stream's errors to callers who ask for them. A device that refuses one may
// still be working.
void wait_for(Stream& stream) noexcept {
  try {
    const std::unique_ptr<Event> all = stream.device().create_event();
    stream.record(*all);
    return all->wait();
  } catch (const std::exception&) {
  }
  try {
    stream.synchronize();
  } catch (const std::exception&) {
    // The failure was reported before, or the result is no longer needed.
  }
}

int in_flight_of(const BatchQueueOptions& options) {
  constexpr int kDefault = 3;
  return options.in_flight > 0 ? options.in_flight : std::max(kDefault, options.burst);
}

}  // namespace

BatchQueue::BatchQueue(ModelState& model, const Fields& fields, const BatchQueueOptions& options)
    : model_(model),
      nan_(options.nan),
      program_(model, fields, options),
      totals_(*model.strategy, program_),
      feed_(model, fields),
      clock_(*model.strategy, shards(), options.trace),
      in_bursts_(options.burst > 1) {
  for (int i = 0; i < in_flight_of(options) + 1; ++i) slots_.push_back(make_slot());
  reset();
}

BatchQueue::~BatchQueue() {
  model_.strategy->for_each_stream([](int, Stream& stream) { wait_for(stream); });
}

StepSlot BatchQueue::make_slot() const {
  StepSlot made;
  const Objective* objective = program_.objective();
  const BlockLayout& layout = program_.layout();
  const std::size_t tail = objective != nullptr ? objective->class_labels_bytes() : result_bytes();
  for (int shard = 0; shard < shards().local_shards(); ++shard) {
    Device& device = stream(shard).device();
    ShardSlot slot{.replica = shards().replica_of(shard),
                   .pinned = device.allocate_pinned(layout.labels + tail),
                   .begin = device.create_timed_event(),
                   .arrived = device.create_timed_event(),
                   .done = device.create_timed_event()};
    std::byte* base = slot.pinned.data();
    slot.scalars = new (base + BlockLayout::kScalars) StepScalars;
    slot.group_scale = new (base + BlockLayout::kGroupScale) float;
    slot.totals = base + BlockLayout::kTotals;
    std::memset(slot.totals, 0, layout.totals_bytes);
    if (objective != nullptr) slot.labels = base + layout.labels;
    if (objective == nullptr) slot.result = reinterpret_cast<float*>(base + layout.labels);
    slot.records.reserve(static_cast<std::size_t>(program_.program().options().rows));
    made.shards.push_back(std::move(slot));
  }
  return made;
}

std::size_t BatchQueue::result_bytes() const {
  std::size_t bytes = 0;
  for (const TensorView& result : program_.results(0)) bytes += result.bytes();
  return bytes;
}

std::optional<GlobalBatch> BatchQueue::take(Loader& loader) {
  asked_ns_ = now_ns();
  GlobalBatch batches;
  for (int shard = 0; shard < shards().local_shards(); ++shard) {
    std::optional<Batch> batch = loader.next(shard);
    if (!batch) return std::nullopt;
    batches.push_back(std::move(*batch));
  }
  taken_ns_ = now_ns();
  waited_ns_ += taken_ns_ - asked_ns_;
  return batches;
}

// Costs a GPU's host little while the device is still busy and the batch has arrived: per replica two events, one
// call for all copies to the device and one for those from it, two queries, and the calls of the work
// (tests/cuda/step_calls_test.cpp).
void BatchQueue::submit(GlobalBatch batches, const StepScalars& common, const Work& work) {
  if (failed_) throw Error(ErrorCode::kCancelled, "the run has failed before", "start another one");
  const std::size_t oldest = after(next_, 1);
  if (slots_[oldest].pending) make_room(oldest);
  StepSlot& step = slots_[next_];

  step.step = common.step;
  step.position = batches.front().position();
  step.asked_ns = asked_ns_;
  step.taken_ns = taken_ns_;
  step.restarted = std::exchange(restarted_, false);
  failed_ = true;  // until every replica has its share
  submit_to_all(*model_.strategy, common.step, [&](int r) {
    for_shards_of(r, [&](int shard) {
      ShardSlot& slot = step.shards[static_cast<std::size_t>(shard)];
      Batch& batch = batches[static_cast<std::size_t>(shard)];
      shards().follow_replica(shard);
      describe(batch, common, slot);
      copy_in(shard, batch, slot);
      batch.release(stream(shard));
      work.compute(shard);
    });
  });
  if (waits_for_host_functions()) wait_for_host_functions(step);
  submit_to_all(*model_.strategy, common.step, [&](int r) {
    shards().join(r);
    work.finish(r);
    for_shards_of(r, [&](int shard) { copy_out(shard, step.shards[static_cast<std::size_t>(shard)]); });
  });
  failed_ = false;
  submitted_ = true;
  step.pending = true;
  next_ = oldest;
}

bool BatchQueue::waits_for_host_functions() const {
  const Objective* objective = program_.objective();
  return program_.program().options().mode == Mode::kTrain && objective != nullptr && objective->calls_host() &&
         stream(0).failure_word() != nullptr;
}

void BatchQueue::wait_for_host_functions(const StepSlot& step) {
  const auto count = static_cast<int>(step.shards.size());
  for (int shard = 0; shard < count; ++shard)
    stream(shard).record(*step.shards[static_cast<std::size_t>(shard)].done);
  for (const ShardSlot& shard : step.shards) shard.done->wait();
  for (int shard = 0; shard < count; ++shard) {
    if (*stream(shard).failure_word() != 0) throw_failed(*model_.strategy, step.step);
  }
}

void BatchQueue::describe(const Batch& batch, const StepScalars& common, ShardSlot& slot) {
  slot.examples = batch.examples();
  slot.records.assign(batch.records().begin(), batch.records().end());
  *slot.scalars = common;
  slot.scalars->rows = batch.examples();
  slot.scalars->first_row = common.first_row + static_cast<std::uint64_t>(batch.position().first_row);
  *slot.group_scale = group_scale(batch, common);
  slot.first_sums().examples = ShardSlot::kNotRun;
}

// Returns the factor for the gradients that a step has accumulated up to this batch.
float BatchQueue::group_scale(const Batch& batch, const StepScalars& common) const {
  const Objective* objective = program_.objective();
  if (objective != nullptr && objective->reduction() == Reduction::kSum) return 1;
  const auto so_far = static_cast<std::int64_t>(common.first_row) + batch.position().global_examples;
  return 1.0F / static_cast<float>(std::max<std::int64_t>(1, so_far));
}

void BatchQueue::copy_in(int shard, const Batch& batch, ShardSlot& slot) {
  const ProgramBinding bound = program_.binding(shard);
  slot.submitted_ns = now_ns();
  // There is no gap while the last batch is running, except for the duration of this submission.
  slot.idle = slots_[next_].restarted || previous().shards[static_cast<std::size_t>(shard)].done->ready();
  if (slot.idle) bound.stream.record(*slot.begin);
  slot.waited = !batch.ready().ready();
  if (slot.waited) {
    bound.stream.wait(batch.ready());
    bound.stream.record(*slot.arrived);
  }
  copies_.clear();
  std::byte* block = program_.block(shard);
  copies_.push_back({.to = block, .from = slot.pinned.data(), .bytes = BlockLayout::kWorkFailed});
  if (const std::uint32_t* failed = bound.stream.failure_word()) {
    copies_.push_back({.to = block + BlockLayout::kWorkFailed, .from = failed, .bytes = sizeof *failed});
  } else {
    copies_.front().bytes = BlockLayout::kTotals;
  }
  feed_.load(batch, program_.program(), bound, copies_);
  if (const Objective* objective = program_.objective()) {
    std::byte* base = block + program_.layout().labels;
    for (const Objective::Labels& labels : objective->labels()) {
      const TensorView& from = batch.tensor(labels.field.name);
      copies_.push_back({.to = base + labels.offset, .from = from.data, .bytes = from.bytes()});
    }
  }
  bound.stream.copy_together(copies_);
}

// Submits to the replica's stream.
void BatchQueue::copy_out(int shard, const ShardSlot& slot) {
  Stream& stream = model_.strategy->stream(slot.replica);
  copies_.clear();
  std::size_t bytes = program_.layout().labels - BlockLayout::kCollectiveFailed;
  if (const Objective* objective = program_.objective()) {
    bytes += objective->class_labels_bytes();
  } else {
    float* to = slot.result;
    for (const TensorView& result : program_.results(shard)) {
      copies_.push_back({.to = to, .from = result.data, .bytes = result.bytes()});
      to += result.elements();
    }
  }
  copies_.push_back({.to = slot.pinned.data() + BlockLayout::kCollectiveFailed,
                     .from = program_.block(shard) + BlockLayout::kCollectiveFailed,
                     .bytes = bytes});
  stream.copy_together(copies_);
  stream.record(*slot.done);
}

// Collects the oldest batch; in bursts half of them, once all of these are done: the thread wakes once for many
// steps.
void BatchQueue::make_room(std::size_t oldest) {
  const std::size_t count = in_bursts_ ? slots_.size() / 2 : 1;
  if (in_bursts_) wait_until_done(slots_[after(oldest, count - 1)]);
  for (std::size_t i = 0; i < count; ++i) collect(after(oldest, i));
}

void BatchQueue::wait_until_done(const StepSlot& step) {
  const Stopwatch waited;
  for (const ShardSlot& shard : step.shards) shard.done->wait();
  waited_ns_ += waited.nanoseconds();
}

void BatchQueue::collect(std::size_t index) {
  StepSlot& slot = slots_[index];
  try {
    wait_until_done(slot);
    clock_.add(slot, slots_[after(index, slots_.size() - 1)]);
  } catch (const DeviceError& error) {
    failed_ = true;
    throw_failed(*model_.strategy, slot.step, &error);
  }
  slot.pending = false;
  require_success(slot);
  if (const Objective* objective = program_.objective()) {
    totals_.read(slot);
    for (const ShardSlot& shard : slot.shards) {
      if (nan_ == NanPolicy::kStop) check_numbers(*objective, slot, shard);
    }
    if (const LossFunction* wrong = totals_.miscounted()) {
      failed_ = true;
      throw_miscounted(*wrong, slot.step);
    }
  }
  if (on_done) on_done(slot);
}

void BatchQueue::require_success(const StepSlot& slot) {
  if (std::ranges::all_of(slot.shards, &ShardSlot::succeeded)) return;
  failed_ = true;
  throw_failed(*model_.strategy, slot.step);
}

void BatchQueue::warm_up(const Work& work) {
  drain();
  for (int shard = 0; shard < shards().local_shards(); ++shard) {
    program_.clear_block(shard);
    feed_.warm_up(program_.program(), program_.binding(shard));
  }
  // Work that waits for other replicas comes last: meanwhile a device may fail to allocate memory or load kernels.
  submit_to_all(*model_.strategy, model_.step, [&](int r) {
    for_shards_of(r, [&](int shard) {
      shards().follow_replica(shard);
      work.compute(shard);
    });
    shards().join(r);
    work.finish(r);
  });
  model_.strategy->synchronize();
  reset();
}

const StepSlot& BatchQueue::last_batch() const {
  if (!submitted_) throw ConfigError("there was no batch yet", "call forward() first");
  return previous();
}

void BatchQueue::record_done(int replica) {
  constexpr std::size_t kFailed = BlockLayout::kCollectiveFailed;
  Stream& stream = model_.strategy->stream(replica);
  for_shards_of(replica, [&](int shard) {
    const ShardSlot& slot = last_batch().shards[static_cast<std::size_t>(shard)];
    stream.copy(slot.pinned.data() + kFailed, program_.block(shard) + kFailed, BlockLayout::kTotals - kFailed);
    stream.record(*slot.done);
  });
}

void BatchQueue::drain() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[after(next_, i)].pending) collect(after(next_, i));
  }
}

void BatchQueue::finish() {
  drain();
  totals_.finish();
}

void BatchQueue::reset() {
  drain();
  totals_.reset();
  clock_.restart();
  restarted_ = true;
}

}  // namespace headrace
