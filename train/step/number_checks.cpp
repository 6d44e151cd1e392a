#include "headrace/train/step/number_checks.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>

#include "headrace/devices/base/bf16.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/device.h"

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

std::optional<std::size_t> first_not_finite(const float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (!std::isfinite(values[i])) return i;
  }
  return std::nullopt;
}

void NumberProbe::look(std::string what, const TensorView& tensor, std::int64_t elements) {
  const std::size_t look = looks_++;
  const bool numbers = tensor.dtype == DType::kF32 || tensor.dtype == DType::kBF16;
  if (!tensor.defined() || !numbers || elements == 0) return;
  const std::size_t count = static_cast<std::size_t>(elements), bytes = count * size_of(tensor.dtype);
  if (copies_.empty() || copies_.back().size() < bytes) {
    copies_.push_back(stream_.device().allocate_pinned(bytes));
  }
  std::byte* copy = copies_.back().data();
  stream_.copy(copy, tensor.data, bytes);
  stream_.call(
      [this, copy, count, tensor, what = std::move(what), look] { examine(copy, count, tensor, what, look); });
}

void NumberProbe::examine(const std::byte* copy, std::size_t elements, const TensorView& tensor,
                          const std::string& what, std::size_t look) {
  if (found_) return;
  std::vector<float> widened_values;
  const auto* values = reinterpret_cast<const float*>(copy);
  if (tensor.dtype == DType::kBF16) {
    const auto* narrow = reinterpret_cast<const BFloat16*>(copy);
    for (std::size_t i = 0; i < elements; ++i) widened_values.push_back(widened(narrow[i]));
    values = widened_values.data();
  }
  const std::optional<std::size_t> at = first_not_finite(values, elements);
  if (!at) return;
  found_ = Found{.look = look,
                 .what = what,
                 .shape = tensor.shape,
                 .element = static_cast<std::int64_t>(*at),
                 .value = values[*at]};
}

}  // namespace headrace
