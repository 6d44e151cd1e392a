// How the devices of a strategy want a step's tensors stored.
#pragma once

#include "headrace/devices/kernels.h"

namespace headrace {

class Strategy;

// f32 where devices do not agree, as one program serves all.
struct StorageTypes {
  DType activations = DType::kF32;
  DType product_weights = DType::kF32;
};

StorageTypes storage_types(const Strategy& strategy, Precision precision);

}  // namespace headrace
