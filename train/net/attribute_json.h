// Converts values of attributes to and from JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "headrace/train/layers.h"

namespace headrace {

// Writes a float with the fewest digits that identify it. Throws ConfigError if it is not finite.
nlohmann::ordered_json attribute_to_json(const Attributes::Value& value);

// Returns std::nullopt for a value that no attribute can hold.
std::optional<Attributes::Value> attribute_from_json(const nlohmann::ordered_json& json);
// The message for such a value.
inline constexpr const char* kNoAttribute =
    "an attribute is a flag, a number, a text or a list of whole numbers that fit 64 bits";

}  // namespace headrace
