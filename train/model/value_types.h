// Determines which layers a program runs, which results it gives, and in which type it stores each.
#pragma once

#include <vector>

#include "headrace/devices/base/dtype.h"
#include "headrace/train/graph.h"
#include "headrace/train/layers.h"

namespace headrace {

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
