// What several layers of the tree are made with. Private to the room.
#pragma once

#include <string>

#include "headrace/train/layers.h"

namespace headrace {

Fill to_fill(Initializer initializer) noexcept;
// "glorot_uniform": as an attribute.
std::string to_text(Initializer initializer);
Initializer initializer_of(const LayerRecord& record);

// The shape of a layer's only input; ConfigError where it has none or several.
const Shape& only_input(const LayerRecord& record);

// A layer that is made from its name and its input's shape alone.
template <typename Kind>
std::shared_ptr<const Layer> remake(const LayerRecord& record) {
  return std::make_shared<Kind>(record.name, only_input(record));
}

// Of the tree's own layers.
const LayerMakers& built_in_layers();

}  // namespace headrace
