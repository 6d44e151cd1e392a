// Helpers shared by the built-in layers. Private to this folder.
#pragma once

#include <string>

#include "headrace/train/layers.h"

namespace headrace {

Fill to_fill(Initializer initializer) noexcept;
// Returns the initializer's value as an attribute: "glorot_uniform".
std::string to_text(Initializer initializer);
Initializer initializer_of(const LayerRecord& record);

// Returns the shape of a layer's only input. Throws ConfigError if it has none or several.
const Shape& only_input(const LayerRecord& record);

// Creates a layer from its name and the shape of its only input.
template <typename Kind>
std::shared_ptr<const Layer> remake(const LayerRecord& record) {
  return std::make_shared<Kind>(record.name, only_input(record));
}

// Returns the makers of the built-in layers.
const LayerMakers& built_in_layers();

}  // namespace headrace
