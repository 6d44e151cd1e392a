#include "headrace/train/engine/step_failure.h"

#include <fmt/format.h>

#include <string>

namespace headrace {
namespace {

struct Failure {
  int replica = 0;
  Error error;
};

int replica_of(const Strategy& strategy, const std::string& device) {
  int replica = strategy.replicas() - 1;
  while (replica > 0 && strategy.device(replica).info().name != device) --replica;
  return replica;
}

// Of all errors, those of the replicas' streams after the known one, the first that is more than a consequence of
// another's.
Failure find_cause(Strategy& strategy, const std::optional<DeviceError>& known) {
  std::optional<Failure> found;
  if (known) found = Failure{replica_of(strategy, known->device()), *known};
  const auto note = [&found](int replica, const Error& error) {
    if (!found || found->error.code() == ErrorCode::kCancelled) found = Failure{replica, error};
  };
  strategy.for_each_stream([&](int replica, Stream& stream) {
    try {
      stream.synchronize();
    } catch (const Error& error) {
      note(replica, error);
    } catch (const std::exception& error) {  // of a function of the user's
      note(replica, Error(ErrorCode::kDevice, error.what()));
    }
  });
  return found.value_or(Failure{0, Error(ErrorCode::kDevice, "its work was skipped")});
}

}  // namespace

void throw_failed(Strategy& strategy, std::uint64_t step, const std::optional<DeviceError>& known) {
  strategy.collective().abort(fmt::format("a replica failed in step {}", step));
  const Failure failure = find_cause(strategy, known);
  strategy.recover();
  const std::string& device = strategy.device(failure.replica).info().name;
  throw DeviceError(
      failure.error.code(),
      fmt::format("replica {} ({}) failed in step {}: {}", failure.replica, device, step, failure.error.message()),
      device, failure.error.hint());
}

namespace {

std::string step_place(const StepSlot& step, const ShardSlot& shard) {
  return fmt::format("step {} (batch {} of pass {}, replica {})", step.step, step.position.step,
                     step.position.epoch, shard.replica);
}

void check_class_numbers(const Objective::Labels& labels, const ShardSlot& slot, const std::string& where) {
  const auto* numbers = reinterpret_cast<const std::int64_t*>(slot.labels + labels.offset);
  for (std::size_t row = 0; row < slot.records.size(); ++row) {
    if (numbers[row] >= 0 && numbers[row] < labels.classes) continue;
    throw DataError(ErrorCode::kDataCorrupt,
                    fmt::format("label {} in {} is not one of the net's {} classes, 0 to {}", numbers[row], where,
                                labels.classes, labels.classes - 1),
                    {.source = "field '" + labels.field.name + "'", .record = slot.records[row]},
                    "give the net's last layer one unit a class, or correct the data");
  }
}

}  // namespace

void check_class_numbers(const Objective& objective, const StepSlot& step, const ShardSlot& shard) {
  for (const Objective::Labels& labels : objective.labels()) {
    if (labels.classes == 0) continue;
    check_class_numbers(labels, shard, step_place(step, shard));
  }
}

void check_numbers(const Objective& objective, const StepSlot& step, const ShardSlot& shard) {
  if (objective.finite_losses(shard.totals)) return;
  check_class_numbers(objective, step, shard);
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("the loss is not a finite number in {}", step_place(step, shard)),
              "lower the learning rate, or look for inputs and labels that are not finite");
}

void throw_miscounted(const LossFunction& loss, std::uint64_t step) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("the loss '{}' did not count the examples of step {}", loss.name(), step),
              "its submit() must add one loss for each real row to the sums, as Kernels::add_losses() does");
}

}  // namespace headrace
