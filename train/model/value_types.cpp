#include "headrace/train/model/value_types.h"

#include <algorithm>

#include "headrace/train/model/model_state.h"
#include "headrace/train/strategy.h"

namespace headrace {

ProgramResults results_of(const Graph& graph, const std::vector<bool>& leaves_out_softmax) {
  ProgramResults results;
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    const int output = graph.outputs()[i];
    const bool left_out = i < leaves_out_softmax.size() && leaves_out_softmax[i] &&
                          graph.layer(output).traits(Mode::kEvaluate).softmax;
    const int result = left_out ? graph.inputs(output).front() : output;
    const auto known = std::ranges::find(results.layers, result);
    results.of_output.push_back(static_cast<int>(known - results.layers.begin()));
    if (known == results.layers.end()) results.layers.push_back(result);
  }
  results.runs = graph.leading_to(results.layers);
  return results;
}

std::vector<DType> value_types(const Graph& graph, Mode mode, const ProgramResults& results, DType activations) {
  std::vector<DType> types(results.runs.size(), activations);
  std::vector<int> reached;
  const auto reach = [&](int id) {
    if (!results.runs[static_cast<std::size_t>(id)] || types[static_cast<std::size_t>(id)] == DType::kF32) return;
    types[static_cast<std::size_t>(id)] = DType::kF32;
    reached.push_back(id);
  };
  for (const int result : results.layers) reach(result);
  for (int id = 0; id < graph.size(); ++id) {
    if (graph.layer(id).traits(mode).f32) reach(id);
  }
  while (!reached.empty()) {
    const int id = reached.back();
    reached.pop_back();
    if (!graph.layer(id).traits(mode).casts) {
      for (const int input : graph.inputs(id)) reach(input);
    }
    for (const int consumer : graph.consumers(id)) {
      if (!graph.layer(consumer).traits(mode).casts) reach(consumer);
    }
  }
  return types;
}

StorageTypes storage_types(const Strategy& strategy, Precision precision) {
  const auto of = [&](int replica) -> StorageTypes {
    const Kernels& kernels = *strategy.device(replica).kernels();
    return {.activations = kernels.activation_type(precision),
            .product_weights = kernels.product_weights_type(precision)};
  };
  StorageTypes agreed = of(0);
  for (int r = 1; r < strategy.local_replicas(); ++r) {
    const StorageTypes wanted = of(r);
    if (wanted.activations != agreed.activations) agreed.activations = DType::kF32;
    if (wanted.product_weights != agreed.product_weights) agreed.product_weights = DType::kF32;
  }
  return agreed;
}

DType converted_type(const ModelState& model, Mode mode) {
  const Precision precision = model.compiled ? model.compiled->precision : Precision::kF32;
  const DType activations = storage_types(*model.strategy, precision).activations;
  const std::vector<bool> left_out(model.graph->outputs().size(), mode != Mode::kPredict);
  const ProgramResults results = results_of(*model.graph, left_out);
  const std::vector<DType> types = value_types(*model.graph, mode, results, activations);
  for (int id = 0; id < model.graph->size(); ++id) {
    if (model.graph->layer(id).kind() == "input" && types[static_cast<std::size_t>(id)] != activations) {
      return DType::kF32;
    }
  }
  return activations;
}

}  // namespace headrace
