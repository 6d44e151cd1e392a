// Which layers a program runs and gives the results of, and in which type it stores each.
#pragma once

#include <vector>

#include "headrace/devices/base/dtype.h"
#include "headrace/train/graph.h"
#include "headrace/train/layers.h"

namespace headrace {

struct ProgramResults {
  std::vector<int> layers;     // each once
  std::vector<int> of_output;  // by the graph's output: which of them
  std::vector<bool> runs;      // by layer
};

// A result is that of an output or, where that is a softmax which is left out, what it would be applied to.
// `leaves_out_softmax`: by output, empty for none; nothing is left out of what is no softmax.
ProgramResults results_of(const Graph& graph, const std::vector<bool>& leaves_out_softmax);

// By layer; its gradient is of the same type. Everything is stored as `activations`, but what is connected with a
// result, or with a layer that takes nothing else (LayerTraits::f32), without a layer between that may change the
// type (LayerTraits::casts: a dense one) is f32: the logits, and what is made of them. A net without such a layer
// is f32 throughout.
std::vector<DType> value_types(const Graph& graph, Mode mode, const ProgramResults& results, DType activations);

}  // namespace headrace
