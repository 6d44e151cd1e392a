#include "headrace/train/engine/batch_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "headrace/devices/base/error.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

constexpr std::size_t kLine = 64;  // every part of a block begins on a cache line
constexpr std::size_t kScalarsAt = 0, kSumsAt = kLine, kGroupScaleAt = 2 * kLine, kLabelsAt = 3 * kLine;
static_assert(sizeof(StepScalars) <= kLine && sizeof(MetricSums) <= kLine);
static_assert(VariableLayout::kAlignment * sizeof(float) <= kLine);

std::size_t bytes_of(std::int64_t count, std::size_t size) { return static_cast<std::size_t>(count) * size; }

}  // namespace

BatchRunner::BatchRunner(ModelState& model, const Fields& fields, const BatchRunnerOptions& options)
    : model_(model), options_(options), program_(*model.graph, model.layout, options.program) {
  check_inputs(fields);
  if (options_.loss) check_labels(fields);
  allocate();
  fill_input_scales();
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

void BatchRunner::check_inputs(const Fields& fields) {
  for (int id = 0; id < model_.graph->size(); ++id) {
    const Layer& layer = model_.graph->layer(id);
    if (layer.kind() != "input") continue;
    const Field& field = fields[find_field(fields, layer.name())];
    if (!(field.shape == layer.shape())) {
      throw ConfigError(fmt::format("field '{}' of the data has shape {}, the net's input wants {}", field.name,
                                    field.shape.to_string(), layer.shape().to_string()),
                        "build the net with {.fields = dataset.fields()}, or map the data to that shape");
    }
    if (field.dtype != DType::kF32 && field.dtype != DType::kU8) {
      throw ConfigError(fmt::format("field '{}' of the data is {}; a net takes float32 or uint8", field.name,
                                    to_string(field.dtype)),
                        "add cast(DType::kF32) to the data set");
    }
    if (field.dtype == DType::kU8) largest_u8_ = std::max(largest_u8_, field.shape.elements());
    inputs_.push_back({.layer = id, .field = field.name, .dtype = field.dtype});
  }
}

void BatchRunner::check_labels(const Fields& fields) const {
  const Field& field = fields[find_field(fields, options_.loss->label_field)];
  if (field.dtype == DType::kI64 && field.shape.elements() == 1) return;
  throw ConfigError(fmt::format("field '{}' is {} of shape {}; the loss wants one int64 class number an example",
                                field.name, to_string(field.dtype), field.shape.to_string()));
}

void BatchRunner::allocate() {
  const std::size_t labels = bytes_of(options_.program.rows, sizeof(std::int64_t));
  for (int replica = 0; replica < model_.strategy->replicas(); ++replica) {
    Device& device = model_.strategy->device(replica);
    memory_.push_back({.workspace = device.allocate(program_.workspace_bytes()),
                       .block = device.allocate(kLabelsAt + labels),
                       .input_scales = device.allocate(bytes_of(2 * largest_u8_, sizeof(float)))});
    // Rows that no batch has filled yet are read as padding: they must be finite.
    stream(replica).fill(memory_.back().workspace.data(), 0, memory_.back().workspace.size());
    stream(replica).fill(memory_.back().block.data(), 0, memory_.back().block.size());
  }
}

void BatchRunner::fill_input_scales() {
  if (largest_u8_ == 0) return;
  std::vector<float> values(static_cast<std::size_t>(2 * largest_u8_), 0.0F);
  std::fill_n(values.begin(), largest_u8_, 1.0F / 255.0F);
  for (int replica = 0; replica < model_.strategy->replicas(); ++replica) {
    const Buffer& place = memory_[static_cast<std::size_t>(replica)].input_scales;
    stream(replica).copy(place.data(), values.data(), place.size());
  }
  model_.strategy->synchronize();
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
    slot.examples = batch.examples();
    slot.first_row = batch.position().first_row;
    slot.records.assign(batch.records().begin(), batch.records().end());
    *slot.scalars = common;
    slot.scalars->rows = batch.examples();
    slot.scalars->first_row = common.first_row + static_cast<std::uint64_t>(batch.position().first_row);
    slot.sums->examples = ReplicaSlot::kNotRun;

    upload(r, batch, slot);
    batch.release(stream(r));
    body(r, slot);
    if (slot.result != nullptr) {
      const TensorView result = program_.result(binding(r));
      stream(r).copy(slot.result, result.data, result.bytes());
    }
    stream(r).copy(slot.sums, sums(r), sizeof(MetricSums));
    stream(r).record(*slot.done);
  }
  step.pending = true;
}

void BatchRunner::upload(int replica, const Batch& batch, const ReplicaSlot& slot) {
  Stream& queue = stream(replica);
  queue.copy(memory_[static_cast<std::size_t>(replica)].block.data() + kScalarsAt, slot.scalars, sizeof(StepScalars));
  queue.wait(batch.ready());
  for (const Input& input : inputs_) load_input(replica, input, batch.tensor(input.field));
  if (!options_.loss) return;
  const TensorView& from = batch.tensor(options_.loss->label_field);
  queue.copy(labels(replica).data, from.data, from.bytes());
  queue.copy(slot.labels, from.data, from.bytes());
}

void BatchRunner::load_input(int replica, const Input& input, const TensorView& from) {
  const ProgramBinding bound = binding(replica);
  const TensorView to = program_.value(bound, input.layer);
  if (input.dtype == DType::kF32) return bound.stream.copy(to.data, from.data, to.bytes());
  const Shape flat{options_.program.rows, to.elements() / options_.program.rows};
  const Buffer& scales = memory_[static_cast<std::size_t>(replica)].input_scales;
  const std::size_t half = bytes_of(largest_u8_, sizeof(float));
  bound.kernels.scale_shift(bound.stream, {from.data, flat, DType::kU8}, scales.view(Shape{flat[1]}, DType::kF32),
                            scales.view(Shape{flat[1]}, DType::kF32, half), {to.data, flat, DType::kF32});
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
    if (slot.replicas[r].sums->examples == ReplicaSlot::kNotRun) fail(slot);
    if (options_.nan == NanPolicy::kStop) check_numbers(slot, static_cast<int>(r));
    total += *slot.replicas[r].sums;
  }
  seen_ = total;
  if (on_done) on_done(slot);
}

// Some replica's stream has an error, and the others may wait for it. The one to report is not one that was
// merely called off.
void BatchRunner::fail(const StepSlot& slot) {
  failed_ = true;
  Strategy& strategy = *model_.strategy;
  strategy.collective().abort(fmt::format("a replica failed in step {}", slot.step));
  std::optional<std::pair<int, Error>> first;
  for (int r = 0; r < strategy.replicas(); ++r) {
    try {
      stream(r).synchronize();
    } catch (const Error& error) {
      if (!first || first->second.code() == ErrorCode::kCancelled) first = {r, error};
    } catch (const std::exception& error) {
      first = {r, Error(ErrorCode::kDevice, error.what())};
    }
  }
  strategy.recover();
  const int replica = first ? first->first : 0;
  const std::string& device = strategy.device(replica).info().name;
  const Error cause = first ? first->second : Error(ErrorCode::kDevice, "the work was skipped");
  throw DeviceError(cause.code(), fmt::format("replica {} ({}) failed in step {}: {}", replica, device, slot.step,
                                              cause.message()),
                    device, cause.hint());
}

void BatchRunner::check_numbers(const StepSlot& slot, int replica) const {
  const ReplicaSlot& mine = slot.replicas[static_cast<std::size_t>(replica)];
  if (std::isfinite(mine.sums->loss)) return;
  const std::string where = fmt::format("step {} (batch {} of pass {}, replica {})", slot.step, slot.position.step,
                                        slot.position.epoch, replica);
  const std::int64_t classes = model_.graph->layer(model_.graph->output()).shape().back();
  for (std::size_t row = 0; mine.labels != nullptr && row < mine.records.size(); ++row) {
    if (mine.labels[row] >= 0 && mine.labels[row] < classes) continue;
    throw DataError(ErrorCode::kDataCorrupt,
                    fmt::format("label {} in {} is not one of the net's {} classes, 0 to {}", mine.labels[row], where,
                                classes, classes - 1),
                    {.source = "field '" + options_.loss->label_field + "'", .record = mine.records[row]},
                    "give the net's last layer one unit a class, or correct the data");
  }
  throw Error(ErrorCode::kInvalidArgument, fmt::format("the loss is not a finite number in {}", where),
              "lower the learning rate, or look for inputs that are not finite");
}

}  // namespace headrace
