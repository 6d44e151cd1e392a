// Which layers a program runs, which results it gives, and in which type it stores each, as the strategy's devices
// prefer.
#pragma once

#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/dtype.h"
#include "headrace/devices/kernels.h"
#include "headrace/train/graph.h"
#include "headrace/train/layers.h"

namespace headrace {

// Determines which layers a program runs, which results it gives, and in which type it stores each.

struct ProgramResults {
  std::vector<int> layers;     // each once
  std::vector<int> of_output;  // by output of the graph: index into `layers`
  std::vector<bool> runs;      // by layer
};

// Returns each output's result or, for a softmax that is left out, its input. `leaves_out_softmax`: by output;
// empty for none; no effect on outputs that are not a softmax.
ProgramResults results_of(const Graph& graph, const std::vector<bool>& leaves_out_softmax);

// Returns types by layer; a layer's gradient has the same type. Everything is stored as `activations` except what
// is connected to a result, or to a layer that takes only f32 (LayerTraits::f32), without a layer in between that
// may change the type (LayerTraits::casts: dense): the logits and what is computed from them are f32. A net
// without such a layer is f32 throughout.
std::vector<DType> value_types(const Graph& graph, Mode mode, const ProgramResults& results, DType activations);

}  // namespace headrace

// Storage types of a step's tensors, as a strategy's devices prefer them.

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
