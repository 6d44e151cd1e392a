#include "headrace/train/engine/storage_types.h"

#include "headrace/train/strategy.h"

namespace headrace {

StorageTypes storage_types(const Strategy& strategy, Precision precision) {
  const auto of = [&](int replica) -> StorageTypes {
    const Kernels& kernels = *strategy.device(replica).kernels();
    return {.activations = kernels.activation_type(precision),
            .product_weights = kernels.product_weights_type(precision)};
  };
  StorageTypes agreed = of(0);
  for (int r = 1; r < strategy.replicas(); ++r) {
    const StorageTypes wanted = of(r);
    if (wanted.activations != agreed.activations) agreed.activations = DType::kF32;
    if (wanted.product_weights != agreed.product_weights) agreed.product_weights = DType::kF32;
  }
  return agreed;
}

}  // namespace headrace
