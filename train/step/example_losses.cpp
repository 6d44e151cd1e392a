#include "headrace/train/step/example_losses.h"

#include <utility>

#include "headrace/train/strategy.h"

namespace headrace {

ExampleLosses::ExampleLosses(const ModelState& model, const BatchRunner& runner, const Fields& fields)
    : model_(model), runner_(runner), one_(*model.graph, model.compiled->loss, {}, fields, 1) {
  const auto rows = static_cast<std::size_t>(runner.program().options().rows);
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
      static_cast<std::size_t>(runner_.last().shards.at(static_cast<std::size_t>(replica)).examples);
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

void ExampleLosses::bring_in_labels(int replica, std::int64_t row) {
  const Memory& memory = memory_[static_cast<std::size_t>(replica)];
  for (const Objective::Labels& labels : one_.labels()) {
    const std::size_t bytes = labels.batch.bytes();
    const auto* all = runner_.labels(replica, labels.field.name).as<std::byte>();
    model_.strategy->stream(replica).copy(memory.labels.data() + labels.offset,
                                          all + static_cast<std::size_t>(row) * bytes, bytes);
  }
}

void ExampleLosses::submit(int replica, std::int64_t row) {
  const Memory& memory = memory_[static_cast<std::size_t>(replica)];
  const ProgramBinding bound = runner_.binding(replica);
  std::vector<TensorView> results = runner_.program().results(bound);
  for (TensorView& result : results) {
    result.data = result.as<float>() + row * result.shape.without_front().elements();
    result.shape = result.shape.without_front().with_front(1);
  }
  bring_in_labels(replica, row);
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

}  // namespace headrace
