// The operations that are data, by name: what a plan's JSON may hold.
#pragma once

#include <span>
#include <string_view>

#include "headrace/pipeline/operation.h"

namespace headrace {

template <typename... Options>
struct OperationList {};

// Whoever adds an operation adds its options here.
using DataOperations =
    OperationList<PadCrop, Flip, Normalize, Cast, ToLayout, FlattenSample, RandomResizedCrop, Resize, CenterCrop,
                  ColorJitter, BrightnessContrast, Cutout, OneHot, Mixup, Cutmix>;

// One of each, with the options that it has unless they are said.
std::span<const OperationPtr> data_operations();

// The one of this name; null: there is none.
OperationPtr find_operation(std::string_view name);

}  // namespace headrace
