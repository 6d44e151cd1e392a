#include "headrace/train/model/storage_types.h"

#include "headrace/train/model/model_state.h"
#include "headrace/train/model/value_types.h"
#include "headrace/train/strategy.h"

namespace headrace {

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
