#include "headrace/train/engine/value_types.h"

namespace headrace {

int result_of(const Graph& graph, bool leaves_out_softmax) {
  const int output = graph.output();
  const bool left_out = leaves_out_softmax && graph.layer(output).traits(Mode::kEvaluate).only_last;
  return left_out ? graph.inputs(output).front() : output;
}

std::vector<DType> value_types(const Graph& graph, Mode mode, int result, DType activations) {
  std::vector<DType> types(static_cast<std::size_t>(result) + 1, activations);
  std::vector<int> reached{result};
  const auto reach = [&](int id) {
    if (id > result || types[static_cast<std::size_t>(id)] == DType::kF32) return;
    types[static_cast<std::size_t>(id)] = DType::kF32;
    reached.push_back(id);
  };
  types.back() = DType::kF32;
  while (!reached.empty()) {
    const int id = reached.back();
    reached.pop_back();
    if (!graph.layer(id).traits(mode).casts) {
      for (const int input : graph.inputs(id)) reach(input);
    }
    for (const int consumer : graph.consumers(id)) {
      if (consumer <= result && !graph.layer(consumer).traits(mode).casts) reach(consumer);
    }
  }
  return types;
}

}  // namespace headrace
