#include "headrace/train/engine/batch_runner.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/train/engine/step_failure.h"
#include "headrace/train/engine/storage_types.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

constexpr std::size_t kLine = 64;  // every part of a block begins on a cache line
constexpr std::size_t lines(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }
// The host's memory and the device's have the same parts: scalars, group scale, totals, labels; behind them the
// device has the metrics' tables. The first two go to the device in one copy, the other two come back in one, of
// the labels class numbers alone.
constexpr std::size_t kScalarsAt = 0, kGroupScaleAt = lines(sizeof(StepScalars)),
                      kTotalsAt = kGroupScaleAt + kLine;

std::optional<Objective> objective_of(const ModelState& model, const Fields& fields,
                                      const BatchRunnerOptions& options) {
  if (!options.loss) return std::nullopt;
  return Objective(*model.graph, *options.loss, options.metrics, fields, options.program.rows);
}

ProgramOptions program_options(const ModelState& model, const BatchRunnerOptions& options) {
  ProgramOptions program = options.program;
  program.activations = storage_types(*model.strategy, program.precision).activations;
  program.leaves_out_softmax = options.loss && leaves_out_softmax(*model.graph, *options.loss);
  return program;
}

}  // namespace

BatchRunner::BatchRunner(ModelState& model, const Fields& fields, const BatchRunnerOptions& options)
    : model_(model),
      options_(options),
      objective_(objective_of(model, fields, options)),
      program_(*model.graph, model.layout, program_options(model, options)),
      feed_(model, fields),
      clock_(*model.strategy, options.trace) {
  if (options.averaged_weights) require_average(model);
  allocate();
  for (int i = 0; i < options.in_flight + 1; ++i) slots_.push_back(make_slot());
  reset_sums();
}

BatchRunner::~BatchRunner() {
  for (int r = 0; r < model_.strategy->replicas(); ++r) wait_for(r);
}

// By an event, which leaves the stream's errors to those who ask for them. A device that refuses one may still be
// at work.
void BatchRunner::wait_for(int replica) const noexcept {
  try {
    const std::unique_ptr<Event> all = model_.strategy->device(replica).create_event();
    stream(replica).record(*all);
    return all->wait();
  } catch (const std::exception&) {
  }
  try {
    stream(replica).synchronize();
  } catch (const std::exception&) {
    // The failure was reported before, or the result is no longer needed.
  }
}

std::size_t BatchRunner::totals_bytes() const noexcept {
  return objective_ ? objective_->totals_bytes() : sizeof(MetricSums);
}

std::size_t BatchRunner::labels_at() const noexcept { return kTotalsAt + lines(totals_bytes()); }

std::size_t BatchRunner::tables_at() const noexcept {
  return labels_at() + (objective_ ? objective_->labels_bytes() : 0);
}

void BatchRunner::allocate() {
  for (int replica = 0; replica < model_.strategy->replicas(); ++replica) {
    Memory memory{.workspace = stream(replica).allocate(program_.workspace_bytes()),
                  .block = stream(replica).allocate(tables_at() + tables_bytes()),
                  .scratch = {},
                  .pinned_scratch = {}};
    const std::size_t scratch = objective_ ? objective_->device_scratch_bytes() : 0;
    const std::size_t pinned = objective_ ? objective_->pinned_scratch_bytes() : 0;
    if (scratch > 0) memory.scratch = stream(replica).allocate(scratch);
    if (pinned > 0) memory.pinned_scratch = model_.strategy->device(replica).allocate_pinned(pinned);
    memory_.push_back(std::move(memory));
    // Rows that no batch has filled yet are read as padding: they must be finite.
    stream(replica).fill(memory_.back().workspace.data(), 0, memory_.back().workspace.size());
    blank(replica);
  }
}

StepSlot BatchRunner::make_slot() const {
  StepSlot made;
  const std::size_t rows = static_cast<std::size_t>(options_.program.rows);
  const std::size_t tail = objective_ ? objective_->class_labels_bytes() : program_.result(binding(0)).bytes();
  for (int replica = 0; replica < model_.strategy->replicas(); ++replica) {
    Device& device = model_.strategy->device(replica);
    ReplicaSlot slot{.pinned = device.allocate_pinned(labels_at() + tail),
                     .begin = device.create_timed_event(),
                     .arrived = device.create_timed_event(),
                     .done = device.create_timed_event()};
    std::byte* base = slot.pinned.data();
    slot.scalars = new (base + kScalarsAt) StepScalars;
    slot.totals = base + kTotalsAt;
    std::memset(slot.totals, 0, totals_bytes());
    slot.group_scale = new (base + kGroupScaleAt) float;
    if (objective_) slot.labels = base + labels_at();
    if (!objective_) slot.result = reinterpret_cast<float*>(base + labels_at());
    slot.records.reserve(rows);
    made.replicas.push_back(std::move(slot));
  }
  return made;
}

Stream& BatchRunner::stream(int replica) const { return model_.strategy->stream(replica); }

ProgramBinding BatchRunner::binding(int replica) const {
  const auto index = static_cast<std::size_t>(replica);
  ProgramBinding bound{.stream = stream(replica), .kernels = *model_.strategy->device(replica).kernels()};
  bound.workspace = memory_[index].workspace.data();
  bound.parameters = model_.variables.parameters(replica).as<float>();
  bound.state = model_.variables.state(replica).as<float>();
  if (options_.program.precision == Precision::kBF16) {
    bound.rounded_parameters = model_.variables.rounded_parameters(replica).as<BFloat16>();
    bound.rounded_state = model_.variables.rounded_state(replica).as<BFloat16>();
  }
  if (options_.averaged_weights) {
    const OptimizerMemory& memory = model_.optimizer[index];
    bound.parameters = reinterpret_cast<float*>(memory.average.data());
    bound.rounded_parameters = reinterpret_cast<BFloat16*>(memory.rounded_average.data());
  }
  if (options_.program.mode == Mode::kTrain) {
    bound.gradients = reinterpret_cast<float*>(model_.optimizer[index].gradients.data());
  }
  bound.scalars = reinterpret_cast<const StepScalars*>(block(replica) + kScalarsAt);
  return bound;
}

std::byte* BatchRunner::block(int replica) const {
  return memory_[static_cast<std::size_t>(replica)].block.data();
}

const float* BatchRunner::group_scale(int replica) const {
  return reinterpret_cast<const float*>(block(replica) + kGroupScaleAt);
}

void BatchRunner::submit_objective(int replica, const TensorView& result, const TensorView& gradient) const {
  const ProgramBinding bound = binding(replica);
  const Memory& memory = memory_[static_cast<std::size_t>(replica)];
  objective_->submit({.stream = bound.stream,
                      .kernels = bound.kernels,
                      .scalars = bound.scalars,
                      .result = result,
                      .gradient = gradient,
                      .totals = block(replica) + kTotalsAt,
                      .labels = block(replica) + labels_at(),
                      .tables = block(replica) + tables_at(),
                      .device_scratch = memory.scratch.data(),
                      .pinned_scratch = memory.pinned_scratch.data()});
}

std::optional<GlobalBatch> BatchRunner::take(Loader& loader) {
  asked_ns_ = now_ns();
  GlobalBatch batches;
  for (int r = 0; r < model_.strategy->replicas(); ++r) {
    std::optional<Batch> batch = loader.next(r);
    if (!batch) return std::nullopt;
    batches.push_back(std::move(*batch));
  }
  taken_ns_ = now_ns();
  waited_ns_ += taken_ns_ - asked_ns_;
  return batches;
}

// What it costs a GPU's host where the device is still busy and the batch has arrived: per replica two events,
// three copies and one of each input, two looks, and what the body submits (tests/cuda/step_calls_test.cpp).
void BatchRunner::submit(GlobalBatch batches, const StepScalars& common, const Body& body) {
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
    ReplicaSlot& slot = step.replicas[static_cast<std::size_t>(r)];
    Batch& batch = batches[static_cast<std::size_t>(r)];
    const ProgramBinding bound = binding(r);
    describe(batch, common, slot);
    bring_in(r, batch, slot);
    batch.release(bound.stream);
    body(r);
    bring_back(r, slot);
    bound.stream.record(*slot.done);
  });
  failed_ = false;
  step.pending = true;
  next_ = oldest;
}

void BatchRunner::bring_in(int replica, const Batch& batch, ReplicaSlot& slot) {
  const ProgramBinding bound = binding(replica);
  slot.submitted_ns = now_ns();
  // While the last batch is at work there is no gap, but for the moment that this submission takes.
  const StepSlot& before = slots_[after(next_, slots_.size() - 1)];
  slot.idle = slots_[next_].restarted || before.replicas[static_cast<std::size_t>(replica)].done->ready();
  if (slot.idle) bound.stream.record(*slot.begin);
  slot.waited = !batch.ready().ready();
  if (slot.waited) {
    bound.stream.wait(batch.ready());
    bound.stream.record(*slot.arrived);
  }
  bound.stream.copy(block(replica) + kScalarsAt, slot.pinned.data() + kScalarsAt, kTotalsAt - kScalarsAt);
  feed_.load(batch, program_, bound);
  if (objective_) bring_in_labels(replica, batch);
}

void BatchRunner::bring_in_labels(int replica, const Batch& batch) {
  std::byte* base = block(replica) + labels_at();
  for (const Objective::Labels& labels : objective_->labels()) {
    const TensorView& from = batch.tensor(labels.field.name);
    stream(replica).copy(base + labels.offset, from.data, from.bytes());
  }
}

void BatchRunner::blank(int replica) {
  stream(replica).fill(block(replica), 0, memory_[static_cast<std::size_t>(replica)].block.size());
}

void BatchRunner::warm_up(const Body& body) {
  drain();
  for (int r = 0; r < model_.strategy->replicas(); ++r) {
    blank(r);
    feed_.warm_up(program_, binding(r));
  }
  // What waits for other replicas comes last: while it does, a device may give no memory and load no kernel.
  submit_to_all(*model_.strategy, model_.step, body);
  model_.strategy->synchronize();
  reset_sums();
}

void BatchRunner::extend(int replica) {
  const StepSlot& last = slots_[after(next_, slots_.size() - 1)];
  stream(replica).record(*last.replicas[static_cast<std::size_t>(replica)].done);
}

// What the gradients of a step are multiplied by that have accumulated up to this batch.
float BatchRunner::group_scale_of(const Batch& batch, const StepScalars& common) const {
  if (objective_ && objective_->reduction() == Reduction::kSum) return 1;
  const auto so_far = static_cast<std::int64_t>(common.first_row) + batch.position().global_examples;
  return 1.0F / static_cast<float>(std::max<std::int64_t>(1, so_far));
}

void BatchRunner::describe(const Batch& batch, const StepScalars& common, ReplicaSlot& slot) {
  slot.examples = batch.examples();
  slot.records.assign(batch.records().begin(), batch.records().end());
  *slot.scalars = common;
  slot.scalars->rows = batch.examples();
  slot.scalars->first_row = common.first_row + static_cast<std::uint64_t>(batch.position().first_row);
  *slot.group_scale = group_scale_of(batch, common);
  slot.first_sums().examples = ReplicaSlot::kNotRun;
}

void BatchRunner::bring_back(int replica, const ReplicaSlot& slot) {
  const ProgramBinding bound = binding(replica);
  if (slot.result != nullptr) {
    const TensorView result = program_.result(bound);
    bound.stream.copy(slot.result, result.data, result.bytes());
  }
  const std::size_t labels_too = objective_ ? objective_->class_labels_bytes() : 0;
  bound.stream.copy(slot.totals, block(replica) + kTotalsAt, labels_at() - kTotalsAt + labels_too);
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
  for (int r = 0; r < model_.strategy->replicas(); ++r) {
    std::vector<std::byte> tables(tables_bytes());
    stream(r).copy(tables.data(), block(r) + tables_at(), tables.size());
    stream(r).synchronize();
    objective_->add_tables(tables.data(), seen_);
  }
}

void BatchRunner::reset_sums() {
  drain();
  for (int r = 0; r < model_.strategy->replicas(); ++r) {
    stream(r).fill(block(r) + kTotalsAt, 0, totals_bytes());
    if (tables_bytes() > 0) stream(r).fill(block(r) + tables_at(), 0, tables_bytes());
  }
  if (objective_) seen_ = objective_->no_totals();
  examples_ = 0;
  clock_.restart();
  restarted_ = true;
}

void BatchRunner::save_totals(int replica, std::byte* into) const {
  stream(replica).copy(into, block(replica) + kTotalsAt, totals_bytes());
  if (tables_bytes() == 0) return;
  stream(replica).copy(into + totals_bytes(), block(replica) + tables_at(), tables_bytes());
}

void BatchRunner::write_totals(int replica, const std::byte* from) {
  stream(replica).copy(block(replica) + kTotalsAt, from, totals_bytes());
  if (tables_bytes() == 0) return;
  stream(replica).copy(block(replica) + tables_at(), from + totals_bytes(), tables_bytes());
}

void BatchRunner::restore_totals(const std::vector<std::vector<std::byte>>& saved) {
  if (saved.empty()) return;
  ObjectiveTotals all = objective_->no_totals();
  for (const std::vector<std::byte>& set : saved) {
    if (set.size() != saved_totals_bytes()) {
      throw ConfigError("the totals of the epoch so far are of another loss or of other metrics",
                        "compile the model with those that it was trained with");
    }
    objective_->add(set.data(), all);
    objective_->add_tables(set.data() + totals_bytes(), all);
  }
  std::vector<std::byte> sum(saved_totals_bytes());
  std::memcpy(sum.data(), all.sums.data(), totals_bytes());
  if (tables_bytes() > 0) std::memcpy(sum.data() + totals_bytes(), all.tables.data(), tables_bytes());
  const int replicas = model_.strategy->replicas();
  submit_and_wait(*model_.strategy, [&] {
    if (static_cast<int>(saved.size()) != replicas) return write_totals(0, sum.data());
    for (int r = 0; r < replicas; ++r) write_totals(r, saved[static_cast<std::size_t>(r)].data());
  });
  examples_ = all.sums.front().examples;
  all.tables.clear();
  seen_ = std::move(all);
}

void BatchRunner::collect(std::size_t index) {
  StepSlot& slot = slots_[index];
  try {
    const Stopwatch waited;
    for (const ReplicaSlot& replica : slot.replicas) replica.done->wait();
    waited_ns_ += waited.nanoseconds();
    clock_.add(slot, slots_[after(index, slots_.size() - 1)]);
  } catch (const DeviceError& error) {
    failed_ = true;
    throw_failed(*model_.strategy, slot.step, error);
  }
  slot.pending = false;
  for (const ReplicaSlot& replica : slot.replicas) {
    if (replica.first_sums().examples != ReplicaSlot::kNotRun) continue;
    failed_ = true;
    throw_failed(*model_.strategy, slot.step);
  }
  if (objective_) count(slot);
  if (on_done) on_done(slot);
}

void BatchRunner::count(const StepSlot& slot) {
  std::ranges::fill(seen_.sums, MetricSums{});
  seen_.tables.clear();
  for (const ReplicaSlot& replica : slot.replicas) {
    objective_->add(replica.totals, seen_);
    examples_ += replica.examples;
  }
  for (std::size_t r = 0; r < slot.replicas.size() && options_.nan == NanPolicy::kStop; ++r) {
    check_numbers(*objective_, slot, static_cast<int>(r));
  }
  if (const LossFunction* wrong = objective_->miscounted(seen_, examples_)) {
    failed_ = true;
    throw_miscounted(*wrong, slot.step);
  }
}

}  // namespace headrace
