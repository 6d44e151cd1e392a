#include "headrace/train/layers/layer.h"

namespace headrace {

std::string label(const std::string& name, const std::string& kind) {
  return "layer '" + name + "' (" + kind + ")";
}

Fill to_fill(Initializer initializer) noexcept {
  return initializer == Initializer::kGlorotUniform ? Fill::kGlorotUniform : Fill::kHeUniform;
}

TensorView as_matrix(const TensorView& view) {
  const std::int64_t columns = view.shape.back();
  return {view.data, Shape{view.elements() / columns, columns}, view.dtype};
}

}  // namespace headrace
