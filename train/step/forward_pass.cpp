#include "headrace/train/evaluator.h"

#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/buffer.h"
#include "headrace/train/step/batch_queue.h"
#include "headrace/train/strategy.h"

namespace headrace {

// Computes the compiled loss of single examples. Submits the loss row by row, so that it equals what a step
// computes whatever the loss is, at many times the cost.
class ExampleLosses {
 public:
  ExampleLosses(const ModelState& model, const BatchQueue& queue, const Fields& fields);

  // Returns the losses of the replica's last batch; waits. REQUIRES: its results are still in place.
  std::vector<float> read(int replica);

 private:
  // One replica's device memory.
  struct Memory {
    Buffer scalars;  // for a batch of one real example
    Buffer labels;   // one example's
    Buffer totals;   // one for each row
    Buffer scratch, pinned_scratch;
  };

  void copy_labels(int replica, std::int64_t row);
  void submit(int replica, std::int64_t row);
  std::byte* totals_of(int replica, std::int64_t row) const;

  const ModelState& model_;
  const BatchQueue& queue_;
  const MirroredProgram& program_;
  Objective one_;  // for a batch of one example
  std::vector<Memory> memory_;
};

ExampleLosses::ExampleLosses(const ModelState& model, const BatchQueue& queue, const Fields& fields)
    : model_(model),
      queue_(queue),
      program_(queue.program()),
      one_(*model.graph, model.compiled->loss, {}, fields, 1) {
  const auto rows = static_cast<std::size_t>(program_.program().options().rows);
  const StepScalars scalars{.rows = 1, .inverse_global_rows = 1};
  for (int r = 0; r < model.strategy->local_replicas(); ++r) {
    Stream& stream = model.strategy->stream(r);
    Memory memory{.scalars = stream.allocate(sizeof scalars),
                  .labels = stream.allocate(one_.labels_bytes()),
                  .totals = stream.allocate(rows * one_.totals_bytes()),
                  .scratch = {},
                  .pinned_scratch = {}};
    if (one_.device_scratch_bytes() > 0) memory.scratch = stream.allocate(one_.device_scratch_bytes());
    if (one_.pinned_scratch_bytes() > 0) {
      memory.pinned_scratch = model.strategy->device(r).allocate_pinned(one_.pinned_scratch_bytes());
    }
    stream.copy(memory.scalars.data(), &scalars, sizeof scalars);
    memory_.push_back(std::move(memory));
  }
  model.strategy->synchronize();
}

std::vector<float> ExampleLosses::read(int replica) {
  const auto examples =
      static_cast<std::size_t>(queue_.last_batch().shards.at(static_cast<std::size_t>(replica)).examples);
  if (examples == 0) return {};
  Stream& stream = model_.strategy->stream(replica);
  stream.fill(totals_of(replica, 0), 0, examples * one_.totals_bytes());
  for (std::size_t row = 0; row < examples; ++row) submit(replica, static_cast<std::int64_t>(row));
  std::vector<std::byte> totals(examples * one_.totals_bytes());
  stream.copy(totals.data(), totals_of(replica, 0), totals.size());
  stream.synchronize();

  std::vector<float> losses;
  for (std::size_t row = 0; row < examples; ++row) {
    ObjectiveTotals seen = one_.no_totals();
    one_.add(totals.data() + row * one_.totals_bytes(), seen);
    losses.push_back(static_cast<float>(one_.sums(seen).loss));
  }
  return losses;
}

void ExampleLosses::copy_labels(int replica, std::int64_t row) {
  const Memory& memory = memory_[static_cast<std::size_t>(replica)];
  for (const Objective::Labels& labels : one_.labels()) {
    const std::size_t bytes = labels.batch.bytes();
    const auto* all = program_.labels(replica, labels.field.name).as<std::byte>();
    model_.strategy->stream(replica).copy(memory.labels.data() + labels.offset,
                                          all + static_cast<std::size_t>(row) * bytes, bytes);
  }
}

void ExampleLosses::submit(int replica, std::int64_t row) {
  const Memory& memory = memory_[static_cast<std::size_t>(replica)];
  const ProgramBinding bound = program_.binding(replica);
  std::vector<TensorView> results = program_.results(replica);
  for (TensorView& result : results) {
    result.data = result.as<float>() + row * result.shape.without_front().elements();
    result.shape = result.shape.without_front().with_front(1);
  }
  copy_labels(replica, row);
  one_.submit({.stream = bound.stream,
               .kernels = bound.kernels,
               .scalars = reinterpret_cast<const StepScalars*>(memory.scalars.data()),
               .results = std::move(results),
               .totals = totals_of(replica, row),
               .labels = memory.labels.data(),
               .device_scratch = memory.scratch.data(),
               .pinned_scratch = memory.pinned_scratch.data()});
}

std::byte* ExampleLosses::totals_of(int replica, std::int64_t row) const {
  return memory_[static_cast<std::size_t>(replica)].totals.data() +
         static_cast<std::size_t>(row) * one_.totals_bytes();
}

ForwardPass::ForwardPass(const ModelState& model, const BatchQueue& queue, const Fields& fields)
    : model_(model), queue_(queue), fields_(fields) {}

ForwardPass::~ForwardPass() = default;

std::int64_t ForwardPass::examples(int replica) const {
  return queue_.last_batch().shards.at(static_cast<std::size_t>(replica)).examples;
}

std::int64_t ForwardPass::global_examples() const { return queue_.last_batch().position.global_examples; }

TensorView ForwardPass::predictions(int replica, int output) const {
  return queue_.program().results(replica).at(static_cast<std::size_t>(output));
}

TensorView ForwardPass::prediction_gradients(int replica, int output) const {
  const std::vector<TensorView> gradients = queue_.program().result_gradients(replica);
  if (gradients.empty() || !gradients.front().defined()) {
    throw ConfigError("a pass without training has no gradients", "take that of a Trainer");
  }
  return gradients.at(static_cast<std::size_t>(output));
}

float ForwardPass::gradient_scale() const {
  return queue_.last_batch().shards.front().scalars->inverse_global_rows;
}

TensorView ForwardPass::labels(int replica, const std::string& field) const {
  return queue_.program().labels(replica, field);
}

std::vector<float> ForwardPass::example_losses(int replica) const {
  if (losses_ == nullptr) losses_ = std::make_unique<ExampleLosses>(model_, queue_, fields_);
  return losses_->read(replica);
}

}  // namespace headrace
