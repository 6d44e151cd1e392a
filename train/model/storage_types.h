// Storage types of a step's tensors, as a strategy's devices prefer them.
#pragma once

#include "headrace/devices/base/api.h"
#include "headrace/devices/kernels.h"
#include "headrace/train/layers.h"

namespace HEADRACE_API headrace {
class Strategy;
}

namespace headrace {

struct ModelState;

// f32 if devices do not agree, since one program serves all.
struct StorageTypes {
  DType activations = DType::kF32;
  DType product_weights = DType::kF32;
};

StorageTypes storage_types(const Strategy& strategy, Precision precision);

// Returns the type to which a loader should convert images (LoaderOptions::converted) for the model's program in
// this mode: bf16 if it stores all of its inputs as bf16.
DType converted_type(const ModelState& model, Mode mode);

}  // namespace headrace
