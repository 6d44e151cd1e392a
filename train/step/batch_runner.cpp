#include "headrace/train/step/batch_runner.h"

#include <algorithm>
#include <utility>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/train/model/block_layout.h"
#include "headrace/train/model/storage_types.h"
#include "headrace/train/model/submission.h"
#include "headrace/train/step/number_checks.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

std::optional<Objective> objective_of(const ModelState& model, const Fields& fields,
                                      const BatchRunnerOptions& options) {
  if (!options.loss) return std::nullopt;
  return Objective(*model.graph, *options.loss, options.metrics, fields, options.program.rows);
}

ProgramOptions program_options(const ModelState& model, const BatchRunnerOptions& options) {
  ProgramOptions program = options.program;
  program.world_replicas = model.strategy->world_replicas();
  program.activations = storage_types(*model.strategy, program.precision).activations;
  program.variables_beside =
      program.mode == Mode::kTrain && options.virtual_shards == 0 && model.strategy->streams(0).weights_apart();
  if (options.loss) program.leaves_out_softmax = leaves_out_softmax(*model.graph, *options.loss);
  return program;
}

std::vector<const Kernels*> kernels_of(const Strategy& strategy) {
  std::vector<const Kernels*> kernels;
  for (int r = 0; r < strategy.local_replicas(); ++r) kernels.push_back(strategy.device(r).kernels());
  return kernels;
}

}  // namespace

BatchRunner::BatchRunner(ModelState& model, const Fields& fields, const BatchRunnerOptions& options)
    : model_(model),
      options_(options),
      shards_(*model.strategy, options.virtual_shards),
      objective_(objective_of(model, fields, options)),
      program_(*model.graph, model.layout, program_options(model, options), kernels_of(*model.strategy)),
      feed_(model, fields),
      clock_(*model.strategy, shards_, options.trace) {
  if (options.averaged_weights) require_average(model);
  make_groups();
  allocate();
  for (int i = 0; i < options.in_flight + 1; ++i) slots_.push_back(make_slot());
  reset_sums();
}

BatchRunner::~BatchRunner() {
  model_.strategy->for_each_stream([](int, Stream& stream) { wait_for(stream); });
}

// By an event, which leaves the stream's errors to those who ask for them. A device that refuses one may still be
// at work.
void BatchRunner::wait_for(Stream& stream) noexcept {
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

// Sums go over the communication stream, as those of gradients do: a replica's are then in one order.
void BatchRunner::make_groups() {
  const int world = model_.strategy->world_replicas(), first = model_.strategy->first_replica();
  if (options_.program.mode != Mode::kTrain || world == 1 || shards_.is_virtual()) return;
  for (int r = 0; r < model_.strategy->local_replicas(); ++r) {
    groups_.push_back({.world_replicas = world, .replica = first + r, .sum = [this, r](const TensorView& tensor) {
                         const ReplicaStreams streams = model_.strategy->streams(r);
                         if (streams.sums_apart()) streams.communication.follow(streams.compute);
                         model_.strategy->collective().all_reduce_sum(r, tensor, streams.communication);
                         if (streams.sums_apart()) streams.compute.follow(streams.communication);
                       }});
  }
}

void BatchRunner::submit_objective(int shard, std::vector<TensorView> results,
                                   std::vector<TensorView> gradients) const {
  const ProgramBinding bound = binding(shard);
  const Memory& memory = memory_[static_cast<std::size_t>(shard)];
  objective_->submit({.stream = bound.stream,
                      .kernels = bound.kernels,
                      .scalars = bound.scalars,
                      .results = std::move(results),
                      .gradients = std::move(gradients),
                      .totals = totals(shard),
                      .labels = block(shard) + labels_at(),
                      .tables = tables(shard),
                      .device_scratch = memory.scratch.data(),
                      .pinned_scratch = memory.pinned_scratch.data()});
}

std::optional<GlobalBatch> BatchRunner::take(Loader& loader) {
  asked_ns_ = now_ns();
  GlobalBatch batches;
  for (int shard = 0; shard < shards_.local_shards(); ++shard) {
    std::optional<Batch> batch = loader.next(shard);
    if (!batch) return std::nullopt;
    batches.push_back(std::move(*batch));
  }
  taken_ns_ = now_ns();
  waited_ns_ += taken_ns_ - asked_ns_;
  return batches;
}

// What it costs a GPU's host where the device is still busy and the batch has arrived: per replica two events, all
// copies to the device in one call and those from it in another, two looks, and what the work submits
// (tests/cuda/step_calls_test.cpp).
void BatchRunner::submit(GlobalBatch batches, const StepScalars& common, const Work& work) {
  if (failed_) throw Error(ErrorCode::kCancelled, "the run has failed before", "start another one");
  const std::size_t oldest = after(next_, 1);
  if (slots_[oldest].pending) collect(oldest);
  StepSlot& step = slots_[next_];

  step.step = common.step;
  step.position = batches.front().position();
  step.asked_ns = asked_ns_;
  step.taken_ns = taken_ns_;
  step.restarted = std::exchange(restarted_, false);
  failed_ = true;  // until every replica has its part
  submit_to_all(*model_.strategy, common.step, [&](int r) {
    for_shards_of(r, [&](int shard) {
      ShardSlot& slot = step.shards[static_cast<std::size_t>(shard)];
      Batch& batch = batches[static_cast<std::size_t>(shard)];
      shards_.follow_replica(shard);
      describe(batch, common, slot);
      bring_in(shard, batch, slot);
      batch.release(stream(shard));
      work.compute(shard);
    });
    shards_.join(r);
    work.finish(r);
    for_shards_of(r, [&](int shard) { bring_back(shard, step.shards[static_cast<std::size_t>(shard)]); });
  });
  failed_ = false;
  submitted_ = true;
  step.pending = true;
  next_ = oldest;
}

void BatchRunner::bring_in(int shard, const Batch& batch, ShardSlot& slot) {
  const ProgramBinding bound = binding(shard);
  slot.submitted_ns = now_ns();
  // While the last batch is at work there is no gap, but for the moment that this submission takes.
  const StepSlot& before = slots_[after(next_, slots_.size() - 1)];
  slot.idle = slots_[next_].restarted || before.shards[static_cast<std::size_t>(shard)].done->ready();
  if (slot.idle) bound.stream.record(*slot.begin);
  slot.waited = !batch.ready().ready();
  if (slot.waited) {
    bound.stream.wait(batch.ready());
    bound.stream.record(*slot.arrived);
  }
  copies_.clear();
  copies_.push_back(
      {.to = block(shard) + kScalarsAt, .from = slot.pinned.data() + kScalarsAt, .bytes = kTotalsAt - kScalarsAt});
  feed_.load(batch, program_, bound, copies_);
  if (objective_) add_labels(shard, batch);
  bound.stream.copy_together(copies_);
}

void BatchRunner::add_labels(int shard, const Batch& batch) {
  std::byte* base = block(shard) + labels_at();
  for (const Objective::Labels& labels : objective_->labels()) {
    const TensorView& from = batch.tensor(labels.field.name);
    copies_.push_back({.to = base + labels.offset, .from = from.data, .bytes = from.bytes()});
  }
}

void BatchRunner::warm_up(const Work& work) {
  drain();
  for (int shard = 0; shard < shards_.local_shards(); ++shard) {
    blank(shard);
    feed_.warm_up(program_, binding(shard));
  }
  // What waits for other replicas comes last: while it does, a device may give no memory and load no kernel.
  submit_to_all(*model_.strategy, model_.step, [&](int r) {
    for_shards_of(r, [&](int shard) {
      shards_.follow_replica(shard);
      work.compute(shard);
    });
    shards_.join(r);
    work.finish(r);
  });
  model_.strategy->synchronize();
  reset_sums();
}

const StepSlot& BatchRunner::last() const {
  if (!submitted_) throw ConfigError("there was no batch yet", "call forward() first");
  return slots_[after(next_, slots_.size() - 1)];
}

TensorView BatchRunner::labels(int shard, const std::string& field) const {
  std::string names;
  for (const Objective::Labels& labels : objective_->labels()) {
    if (labels.field.name == field) {
      return {block(shard) + labels_at() + labels.offset, labels.batch.shape, labels.batch.dtype};
    }
    names += (names.empty() ? "" : ", ") + labels.field.name;
  }
  throw ConfigError("loss and metrics do not use a field '" + field + "'", "they use " + names);
}

void BatchRunner::extend(int replica) {
  for_shards_of(replica, [&](int shard) {
    model_.strategy->stream(replica).record(*last().shards[static_cast<std::size_t>(shard)].done);
  });
}

// What the gradients of a step are multiplied by that have accumulated up to this batch.
float BatchRunner::group_scale_of(const Batch& batch, const StepScalars& common) const {
  if (objective_ && objective_->reduction() == Reduction::kSum) return 1;
  const auto so_far = static_cast<std::int64_t>(common.first_row) + batch.position().global_examples;
  return 1.0F / static_cast<float>(std::max<std::int64_t>(1, so_far));
}

void BatchRunner::describe(const Batch& batch, const StepScalars& common, ShardSlot& slot) {
  slot.examples = batch.examples();
  slot.records.assign(batch.records().begin(), batch.records().end());
  *slot.scalars = common;
  slot.scalars->rows = batch.examples();
  slot.scalars->first_row = common.first_row + static_cast<std::uint64_t>(batch.position().first_row);
  *slot.group_scale = group_scale_of(batch, common);
  slot.first_sums().examples = ShardSlot::kNotRun;
}

void BatchRunner::bring_back(int shard, const ShardSlot& slot) {
  Stream& stream = model_.strategy->stream(slot.replica);
  copies_.clear();
  if (slot.result != nullptr) {
    float* to = slot.result;
    for (const TensorView& result : program_.results(binding(shard))) {
      copies_.push_back({.to = to, .from = result.data, .bytes = result.bytes()});
      to += result.elements();
    }
  }
  const std::size_t labels_too = objective_ ? objective_->class_labels_bytes() : 0;
  copies_.push_back({.to = slot.totals, .from = totals(shard), .bytes = labels_at() - kTotalsAt + labels_too});
  stream.copy_together(copies_);
  stream.record(*slot.done);
}

void BatchRunner::drain() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[after(next_, i)].pending) collect(after(next_, i));
  }
}

void BatchRunner::read_tables() {
  drain();
  if (tables_bytes() == 0) return;
  seen_.tables.clear();
  for (int shard = 0; shard < shards_.local_shards(); ++shard) {
    std::vector<std::byte> counted(tables_bytes());
    stream(shard).copy(counted.data(), tables(shard), counted.size());
    stream(shard).synchronize();
    objective_->add_tables(counted.data(), seen_);
  }
}

void BatchRunner::reset_sums() {
  drain();
  for (int shard = 0; shard < shards_.local_shards(); ++shard) {
    stream(shard).fill(totals(shard), 0, totals_bytes());
    if (tables_bytes() > 0) stream(shard).fill(tables(shard), 0, tables_bytes());
  }
  if (objective_) seen_ = objective_->no_totals();
  examples_ = 0;
  clock_.restart();
  restarted_ = true;
}

void BatchRunner::collect(std::size_t index) {
  StepSlot& slot = slots_[index];
  try {
    const Stopwatch waited;
    for (const ShardSlot& shard : slot.shards) shard.done->wait();
    waited_ns_ += waited.nanoseconds();
    clock_.add(slot, slots_[after(index, slots_.size() - 1)]);
  } catch (const DeviceError& error) {
    failed_ = true;
    throw_failed(*model_.strategy, slot.step, error);
  }
  slot.pending = false;
  for (const ShardSlot& shard : slot.shards) {
    if (shard.first_sums().examples != ShardSlot::kNotRun) continue;
    failed_ = true;
    throw_failed(*model_.strategy, slot.step);
  }
  if (objective_) count(slot);
  if (on_done) on_done(slot);
}

void BatchRunner::count(const StepSlot& slot) {
  std::ranges::fill(seen_.sums, MetricSums{});
  seen_.tables.clear();
  for (const ShardSlot& shard : slot.shards) {
    objective_->add(shard.totals, seen_);
    examples_ += shard.examples;
  }
  for (const ShardSlot& shard : slot.shards) {
    if (options_.nan == NanPolicy::kStop) check_numbers(*objective_, slot, shard);
  }
  if (const LossFunction* wrong = objective_->miscounted(seen_, examples_)) {
    failed_ = true;
    throw_miscounted(*wrong, slot.step);
  }
}

}  // namespace headrace
