// In which type a program stores the result of each layer, and which is its last.
#pragma once

#include <vector>

#include "headrace/devices/base/dtype.h"
#include "headrace/train/graph.h"
#include "headrace/train/layers.h"

namespace headrace {

// The layer whose result is the program's: the last one, or the logits' where a loss follows that takes these, and
// a softmax behind them is left out.
int result_of(const Graph& graph, bool leaves_out_softmax);

// By layer, up to `result`; its gradient is of the same type. Everything is stored as `activations`, but what is
// connected with the result without a layer between that may change the type (LayerTraits::casts: a dense one) is
// f32: the logits, and what is made of them. A net without such a layer is f32 throughout.
std::vector<DType> value_types(const Graph& graph, Mode mode, int result, DType activations);

}  // namespace headrace
