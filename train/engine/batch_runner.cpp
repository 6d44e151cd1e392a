#include "headrace/train/engine/batch_runner.h"

#include <algorithm>
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
// The host's memory and the device's have the same parts. The first two go to the device in one copy, the last two
// come back in one.
constexpr std::size_t kScalarsAt = 0, kGroupScaleAt = lines(sizeof(StepScalars)), kSumsAt = kGroupScaleAt + kLine,
                      kLabelsAt = kSumsAt + lines(sizeof(MetricSums));

ProgramOptions with_activations(ProgramOptions options, const Strategy& strategy) {
  options.activations = storage_types(strategy, options.precision).activations;
  return options;
}

}  // namespace

BatchRunner::BatchRunner(ModelState& model, const Fields& fields, const BatchRunnerOptions& options)
    : model_(model),
      options_(options),
      program_(*model.graph, model.layout, with_activations(options.program, *model.strategy)),
      feed_(model, fields, options.loss),
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

void BatchRunner::allocate() {
  const std::size_t labels = static_cast<std::size_t>(options_.program.rows) * sizeof(std::int64_t);
  for (int replica = 0; replica < model_.strategy->replicas(); ++replica) {
    memory_.push_back({.workspace = stream(replica).allocate(program_.workspace_bytes()),
                       .block = stream(replica).allocate(kLabelsAt + labels)});
    // Rows that no batch has filled yet are read as padding: they must be finite.
    stream(replica).fill(memory_.back().workspace.data(), 0, memory_.back().workspace.size());
    blank(replica);
  }
}

StepSlot BatchRunner::make_slot() const {
  StepSlot made;
  const std::size_t rows = static_cast<std::size_t>(options_.program.rows);
  const std::size_t tail = options_.loss ? rows * sizeof(std::int64_t) : program_.result(binding(0)).bytes();
  for (int replica = 0; replica < model_.strategy->replicas(); ++replica) {
    Device& device = model_.strategy->device(replica);
    ReplicaSlot slot{.pinned = device.allocate_pinned(kLabelsAt + tail),
                     .begin = device.create_timed_event(),
                     .arrived = device.create_timed_event(),
                     .done = device.create_timed_event()};
    std::byte* base = slot.pinned.data();
    slot.scalars = new (base + kScalarsAt) StepScalars;
    slot.sums = new (base + kSumsAt) MetricSums;
    slot.group_scale = new (base + kGroupScaleAt) float;
    if (options_.loss) slot.labels = reinterpret_cast<std::int64_t*>(base + kLabelsAt);
    if (!options_.loss) slot.result = reinterpret_cast<float*>(base + kLabelsAt);
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
  bound.scalars = reinterpret_cast<const StepScalars*>(memory_[index].block.data() + kScalarsAt);
  return bound;
}

TensorView BatchRunner::labels(int replica) const {
  const Buffer& block = memory_[static_cast<std::size_t>(replica)].block;
  return block.view(Shape{options_.program.rows}, DType::kI64, kLabelsAt);
}

MetricSums* BatchRunner::sums(int replica) const {
  return reinterpret_cast<MetricSums*>(memory_[static_cast<std::size_t>(replica)].block.data() + kSumsAt);
}

const float* BatchRunner::group_scale(int replica) const {
  return reinterpret_cast<const float*>(memory_[static_cast<std::size_t>(replica)].block.data() + kGroupScaleAt);
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
  Buffer& block = memory_[static_cast<std::size_t>(replica)].block;
  bound.stream.copy(block.data() + kScalarsAt, slot.pinned.data() + kScalarsAt, kSumsAt - kScalarsAt);
  feed_.load(batch, program_, bound, labels(replica));
}

void BatchRunner::blank(int replica) {
  const Buffer& block = memory_[static_cast<std::size_t>(replica)].block;
  stream(replica).fill(block.data(), 0, block.size());
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
  if (options_.loss && options_.loss->options.reduction == Reduction::kSum) return 1;
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
  slot.sums->examples = ReplicaSlot::kNotRun;
}

void BatchRunner::bring_back(int replica, const ReplicaSlot& slot) {
  const ProgramBinding bound = binding(replica);
  if (slot.result != nullptr) {
    const TensorView result = program_.result(bound);
    bound.stream.copy(slot.result, result.data, result.bytes());
  }
  const std::size_t labels_too = slot.labels != nullptr ? labels(replica).bytes() : 0;
  bound.stream.copy(slot.sums, sums(replica), kLabelsAt - kSumsAt + labels_too);
}

void BatchRunner::drain() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[after(next_, i)].pending) collect(after(next_, i));
  }
}

void BatchRunner::reset_sums() {
  drain();
  for (int r = 0; r < model_.strategy->replicas(); ++r) stream(r).fill(sums(r), 0, sizeof(MetricSums));
  seen_ = {};
  clock_.restart();
  restarted_ = true;
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
  MetricSums total;
  for (std::size_t r = 0; r < slot.replicas.size(); ++r) {
    if (slot.replicas[r].sums->examples == ReplicaSlot::kNotRun) {
      failed_ = true;
      throw_failed(*model_.strategy, slot.step);
    }
    if (options_.nan == NanPolicy::kStop) check_numbers(model_, slot, static_cast<int>(r));
    total += *slot.replicas[r].sums;
  }
  seen_ = total;
  if (on_done) on_done(slot);
}

}  // namespace headrace
