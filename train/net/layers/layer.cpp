#include "headrace/train/net/layers/layer.h"

#include <algorithm>

#include "headrace/devices/base/error.h"

namespace headrace {

std::string label(const std::string& name, const std::string& kind) {
  return "layer '" + name + "' (" + kind + ")";
}

Fill to_fill(Initializer initializer) noexcept {
  switch (initializer) {
    case Initializer::kGlorotUniform: return Fill::kGlorotUniform;
    case Initializer::kHeUniform: return Fill::kHeUniform;
    case Initializer::kFanInUniform: return Fill::kFanInUniform;
    case Initializer::kDirac: return Fill::kDirac;
    case Initializer::kUnitDeviation: return Fill::kUnitDeviation;
  }
  return Fill::kZeros;
}

const Shape& only_input(const LayerRecord& record) {
  if (record.inputs.size() == 1) return record.inputs.front();
  throw ConfigError("layer '" + record.name + "' has " + std::to_string(record.inputs.size()) +
                    " inputs, its kind takes one");
}

bool Layer::has_trained_variables() const {
  const std::vector<VariableSpec> specs = variables();
  return std::ranges::any_of(specs, [](const VariableSpec& spec) { return spec.role == VariableRole::kTrained; });
}

TensorView as_matrix(const TensorView& view) {
  const std::int64_t columns = view.shape.back();
  return {view.data, Shape{view.elements() / columns, columns}, view.dtype};
}

}  // namespace headrace
