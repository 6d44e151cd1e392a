// How the devices of a strategy want a step's tensors stored.
#pragma once

#include "headrace/devices/kernels.h"
#include "headrace/train/layers.h"

namespace headrace {

struct ModelState;
class Strategy;

// f32 where devices do not agree, as one program serves all.
struct StorageTypes {
  DType activations = DType::kF32;
  DType product_weights = DType::kF32;
};

StorageTypes storage_types(const Strategy& strategy, Precision precision);

// What a loader should make of images (LoaderOptions::converted) for the model's program in this mode: bf16 where
// it stores all of its inputs so.
DType converted_type(const ModelState& model, Mode mode);

}  // namespace headrace
