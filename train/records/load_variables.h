// Loads a file's tensors into a model's memory, on all replicas at once.
#pragma once

#include "headrace/train/model/model_state.h"
#include "headrace/train/records/tensor_file.h"

namespace headrace {

enum class LoadedPart { kVariables, kAll };  // kAll: the optimizer's memory too

// Each replica reads a part of the file in its own thread, and all parts are copied to all replicas. Waits. Throws
// DataError if a tensor is missing, has another shape or is damaged: the model's values are then undefined.
// kVariables: second sets of weights become the weights.
void load_variables(const TensorFile& file, ModelState& model, LoadedPart part);

}  // namespace headrace
