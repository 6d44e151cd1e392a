// Checks the results of a step: finite losses, class numbers in range, examples counted by the loss.
#pragma once

#include <cstdint>

#include "headrace/train/losses.h"
#include "headrace/train/step/objective.h"
#include "headrace/train/step/step_slot.h"

namespace headrace {

// Throws a DataError naming the record where one of a shard's class numbers is out of range.
void check_class_numbers(const Objective& objective, const StepSlot& step, const ShardSlot& shard);

// Throws where a shard's sum of losses is not a finite number: a DataError naming the record where a class
// number is out of range, else an Error naming the step.
void check_numbers(const Objective& objective, const StepSlot& step, const ShardSlot& shard);

// Throws an Error that says that the loss did not add its examples to its sums.
[[noreturn]] void throw_miscounted(const LossFunction& loss, std::uint64_t step);

}  // namespace headrace
