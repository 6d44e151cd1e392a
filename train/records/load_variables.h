// A file's tensors into a model's memory, on all replicas at once.
#pragma once

#include "headrace/train/model/model_state.h"
#include "headrace/train/records/tensor_file.h"

namespace headrace {

enum class LoadedPart { kVariables, kAll };  // kAll: what the optimizer keeps, too

// Every replica reads a part of the file, in a thread of its own, and all parts are copied to all replicas. Waits.
// DataError where the file has a tensor not, or of another shape, and for damage: the model's values are then
// undefined. kVariables: second sets of weights become the weights.
void load_variables(const TensorFile& file, ModelState& model, LoadedPart part);

}  // namespace headrace
