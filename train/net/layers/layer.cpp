#include "headrace/train/net/layers/layer.h"

#include <algorithm>
#include <array>

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

namespace {

struct NamedInitializer {
  Initializer initializer;
  const char* name;
};

constexpr std::array kInitializers{NamedInitializer{Initializer::kGlorotUniform, "glorot_uniform"},
                                   NamedInitializer{Initializer::kHeUniform, "he_uniform"},
                                   NamedInitializer{Initializer::kFanInUniform, "fan_in_uniform"},
                                   NamedInitializer{Initializer::kDirac, "dirac"},
                                   NamedInitializer{Initializer::kUnitDeviation, "unit_deviation"}};

}  // namespace

std::string to_text(Initializer initializer) {
  return std::ranges::find(kInitializers, initializer, &NamedInitializer::initializer)->name;
}

Initializer initializer_of(const LayerRecord& record) {
  const std::string name = record.attributes.text("initializer");
  for (const NamedInitializer& each : kInitializers) {
    if (name == each.name) return each.initializer;
  }
  throw ConfigError("layer '" + record.name + "' has the unknown initializer '" + name + "'");
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
