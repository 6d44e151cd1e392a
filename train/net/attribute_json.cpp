#include "headrace/train/net/attribute_json.h"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>
#include <utility>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

std::optional<std::int64_t> whole_from_json(const nlohmann::ordered_json& json) {
  if (!json.is_number_integer()) return std::nullopt;
  if (json.is_number_unsigned() && !std::in_range<std::int64_t>(json.get<std::uint64_t>())) return std::nullopt;
  return json.get<std::int64_t>();
}

}  // namespace

nlohmann::ordered_json attribute_to_json(const Attributes::Value& value) {
  return std::visit(
      [](const auto& held) -> nlohmann::ordered_json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, float>) {
          if (!std::isfinite(held)) throw ConfigError(fmt::format("an attribute of {} cannot be written", held));
          return nlohmann::ordered_json::parse(fmt::format("{}", held));
        } else {
          return held;
        }
      },
      value);
}

std::optional<Attributes::Value> attribute_from_json(const nlohmann::ordered_json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_number_float()) return json.get<float>();
  if (json.is_number()) return whole_from_json(json);
  if (!json.is_array()) return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (const nlohmann::ordered_json& each : json) {
    const std::optional<std::int64_t> number = whole_from_json(each);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace headrace
