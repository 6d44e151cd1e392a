#include "headrace/train/step/number_checks.h"

#include <fmt/format.h>

#include <string>

#include "headrace/devices/base/error.h"

namespace headrace {
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
