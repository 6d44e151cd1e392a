#include "headrace/train/engine/batch_runner.h"

#include <algorithm>

#include "headrace/devices/base/error.h"
#include "headrace/train/engine/step_failure.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

constexpr std::size_t kLine = 64;  // every part of a block begins on a cache line
constexpr std::size_t kScalarsAt = 0, kSumsAt = kLine, kGroupScaleAt = 2 * kLine, kLabelsAt = 3 * kLine;
static_assert(sizeof(StepScalars) <= kLine && sizeof(MetricSums) <= kLine);
static_assert(VariableLayout::kAlignment * sizeof(float) <= kLine);

}  // namespace

BatchRunner::BatchRunner(ModelState& model, const Fields& fields, const BatchRunnerOptions& options)
    : model_(model),
      options_(options),
      program_(*model.graph, model.layout, options.program),
      feed_(model, fields, options.loss) {
  allocate();
  for (int i = 0; i < options.in_flight; ++i) slots_.push_back(make_slot());
  reset_sums();
}

BatchRunner::~BatchRunner() {
  for (int r = 0; r < model_.strategy->replicas(); ++r) {
    try {
      const std::unique_ptr<Event> all = model_.strategy->device(r).create_event();
      stream(r).record(*all);
      all->wait();
    } catch (const std::exception&) {
      // A device that takes no more work does none.
    }
  }
}

void BatchRunner::allocate() {
  const std::size_t labels = static_cast<std::size_t>(options_.program.rows) * sizeof(std::int64_t);
  for (int replica = 0; replica < model_.strategy->replicas(); ++replica) {
    Device& device = model_.strategy->device(replica);
    memory_.push_back(
        {.workspace = device.allocate(program_.workspace_bytes()), .block = device.allocate(kLabelsAt + labels)});
    // Rows that no batch has filled yet are read as padding: they must be finite.
    stream(replica).fill(memory_.back().workspace.data(), 0, memory_.back().workspace.size());
    stream(replica).fill(memory_.back().block.data(), 0, memory_.back().block.size());
  }
}

StepSlot BatchRunner::make_slot() const {
  StepSlot made;
  const std::size_t rows = static_cast<std::size_t>(options_.program.rows);
  const std::size_t tail = options_.loss ? rows * sizeof(std::int64_t) : program_.result(binding(0)).bytes();
  for (int replica = 0; replica < model_.strategy->replicas(); ++replica) {
    Device& device = model_.strategy->device(replica);
    ReplicaSlot slot{.pinned = device.allocate_pinned(kLabelsAt + tail), .done = device.create_event()};
    std::byte* base = slot.pinned.data();
    slot.scalars = new (base + kScalarsAt) StepScalars;
    slot.sums = new (base + kSumsAt) MetricSums;
    slot.group_scale = reinterpret_cast<float*>(base + kGroupScaleAt);
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

float* BatchRunner::group_scale(int replica) const {
  return reinterpret_cast<float*>(memory_[static_cast<std::size_t>(replica)].block.data() + kGroupScaleAt);
}

void BatchRunner::submit(GlobalBatch batches, const StepScalars& common, const Body& body) {
  if (failed_) throw Error(ErrorCode::kCancelled, "the run has failed before", "start it anew");
  StepSlot& step = slots_[next_];
  next_ = (next_ + 1) % slots_.size();
  if (step.pending) collect(step);

  step.step = common.step;
  step.position = batches.front().position();
  for (int r = 0; r < model_.strategy->replicas(); ++r) {
    ReplicaSlot& slot = step.replicas[static_cast<std::size_t>(r)];
    Batch& batch = batches[static_cast<std::size_t>(r)];
    const ProgramBinding bound = binding(r);
    describe(batch, common, slot);
    bound.stream.copy(memory_[static_cast<std::size_t>(r)].block.data() + kScalarsAt, slot.scalars,
                      sizeof(StepScalars));
    feed_.load(r, batch, program_, bound, labels(r));
    batch.release(bound.stream);
    body(r, slot);
    bring_back(r, slot);
    bound.stream.record(*slot.done);
  }
  step.pending = true;
}

void BatchRunner::describe(const Batch& batch, const StepScalars& common, ReplicaSlot& slot) {
  slot.examples = batch.examples();
  slot.records.assign(batch.records().begin(), batch.records().end());
  *slot.scalars = common;
  slot.scalars->rows = batch.examples();
  slot.scalars->first_row = common.first_row + static_cast<std::uint64_t>(batch.position().first_row);
  slot.sums->examples = ReplicaSlot::kNotRun;
}

void BatchRunner::bring_back(int replica, const ReplicaSlot& slot) {
  const ProgramBinding bound = binding(replica);
  if (slot.result != nullptr) {
    const TensorView result = program_.result(bound);
    bound.stream.copy(slot.result, result.data, result.bytes());
  }
  if (slot.labels != nullptr) bound.stream.copy(slot.labels, labels(replica).data, labels(replica).bytes());
  bound.stream.copy(slot.sums, sums(replica), sizeof(MetricSums));
}

bool BatchRunner::idle() const {
  return std::ranges::all_of(slots_, [](const StepSlot& slot) {
    return !slot.pending ||
           std::ranges::all_of(slot.replicas, [](const ReplicaSlot& replica) { return replica.done->ready(); });
  });
}

void BatchRunner::drain() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    StepSlot& slot = slots_[(next_ + i) % slots_.size()];
    if (slot.pending) collect(slot);
  }
}

void BatchRunner::reset_sums() {
  drain();
  for (int r = 0; r < model_.strategy->replicas(); ++r) stream(r).fill(sums(r), 0, sizeof(MetricSums));
  seen_ = {};
}

void BatchRunner::collect(StepSlot& slot) {
  for (const ReplicaSlot& replica : slot.replicas) replica.done->wait();
  slot.pending = false;
  MetricSums total;
  for (std::size_t r = 0; r < slot.replicas.size(); ++r) {
    if (slot.replicas[r].sums->examples == ReplicaSlot::kNotRun) {
      failed_ = true;
      throw_failed(*model_.strategy, slot);
    }
    if (options_.nan == NanPolicy::kStop) check_numbers(model_, slot, static_cast<int>(r));
    total += *slot.replicas[r].sums;
  }
  seen_ = total;
  if (on_done) on_done(slot);
}

}  // namespace headrace
