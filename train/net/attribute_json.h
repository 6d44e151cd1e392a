// Values of attributes as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "headrace/train/layers.h"

namespace headrace {

// A float with as few digits as tell it from its neighbours. ConfigError for one that is not finite.
nlohmann::ordered_json attribute_to_json(const Attributes::Value& value);

// Nothing for what no attribute can be.
std::optional<Attributes::Value> attribute_from_json(const nlohmann::ordered_json& json);
// What is then said of it.
inline constexpr const char* kNoAttribute =
    "an attribute is a flag, a number, a text or a list of whole numbers that fit 64 bits";

}  // namespace headrace
