// The operations that are data, by name: those allowed in a plan's JSON.
#pragma once

#include <span>
#include <string_view>

#include "headrace/pipeline/operations.h"

namespace headrace {

template <typename... Options>
struct OperationList {};

// To add an operation, add its options here.
using DataOperations =
    OperationList<PadCrop, Flip, VerticalFlip, RandomRotation, RandomAffine, Normalize, Cast, ToLayout, LayoutIs,
                  FlattenSample, RandomResizedCrop, Resize, ResizeTo, CenterCrop, ColorJitter, Grayscale,
                  GaussianBlur, Invert, Posterize, Solarize, AdjustSharpness, Autocontrast, Equalize, RandAugment,
                  TrivialAugmentWide, PerImageStandardization, BrightnessContrast, Cutout, RandomErasing, OneHot,
                  Mixup, Cutmix>;

// Returns one of each, with default options.
std::span<const OperationPtr> data_operations();

// Returns the operation of this name; null if there is none.
OperationPtr find_operation(std::string_view name);

}  // namespace headrace
