// Options as members of a JSON object.
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>

#include "headrace/train/optimizers/optimizer_json.h"

namespace headrace::optimizer_json {
namespace {

struct ValueWriter {
  template <typename Value>
  Json operator()(const Value* value) const {
    return *value;
  }
  Json operator()(const float* value) const { return number(*value); }
  Json operator()(const std::vector<float>* values) const {
    Json list = Json::array();
    for (const float value : *values) list.push_back(number(value));
    return list;
  }
};

struct ValueReader {
  const Json& json;
  const std::string& place;

  void operator()(bool* value) const { read(value, json.is_boolean(), "true or false"); }
  void operator()(std::string* value) const { read(value, json.is_string(), "a string"); }
  void operator()(std::filesystem::path* value) const { read(value, json.is_string(), "a path"); }
  template <typename Number>
  requires std::is_floating_point_v<Number>
  void operator()(Number* value) const {
    want(json.is_number(), "a number");
    *value = static_cast<Number>(json.get<double>());
  }
  template <typename Number>
  requires std::is_integral_v<Number>
  void operator()(Number* value) const {
    const bool fits = json.is_number_unsigned()  ? std::in_range<Number>(json.get<std::uint64_t>())
                      : json.is_number_integer() ? std::in_range<Number>(json.get<std::int64_t>())
                                                 : false;
    read(value, fits, "a whole number in range");
  }
  template <typename Item>
  void operator()(std::vector<Item>* values) const {
    want(json.is_array(), "a list");
    values->clear();
    for (std::size_t i = 0; i < json.size(); ++i) {
      read_value(json[i], fmt::format("{}[{}]", place, i), &values->emplace_back());
    }
  }

 private:
  void want(bool is, const char* what) const {
    if (!is) refuse(place, fmt::format("expected {}, got {}", what, json.dump()));
  }
  template <typename Value>
  void read(Value* value, bool is, const char* what) const {
    want(is, what);
    *value = json.get<Value>();
  }
};

}  // namespace

Json number(float value) {
  if (!std::isfinite(value))
    throw ConfigError(fmt::format("an optimizer with the value {} cannot be written", value));
  char digits[32];
  const std::to_chars_result end = std::to_chars(std::begin(digits), std::end(digits), value);
  return Json::parse(std::begin(digits), end.ptr);
}

void FieldWriter::visit(const char* name, OptionPlace place) { json[name] = std::visit(ValueWriter{}, place); }

void FieldReader::visit(const char* name, OptionPlace place) {
  know(name);
  if (json_.contains(name)) read_value(json_.at(name), within(place_, name), place);
}

void FieldReader::visit_choice(const char* name, std::size_t& number, std::span<const char* const> choices) {
  know(name);
  if (!json_.contains(name)) return;
  const auto found = std::ranges::find_if(choices, [&](const char* choice) { return json_.at(name) == choice; });
  if (found == choices.end()) {
    refuse(within(place_, name),
           fmt::format("expected one of {}, got {}", fmt::join(choices, ", "), json_.at(name).dump()));
  }
  number = static_cast<std::size_t>(found - choices.begin());
}

void FieldReader::refuse_unknown() const {
  for (const auto& [key, value] : json_.items()) {
    if (std::ranges::find(known_, key) != known_.end()) continue;
    refuse(within(place_, key), fmt::format("there is no such key, there are {}", fmt::join(known_, ", ")));
  }
}

void read_value(const Json& json, const std::string& place, OptionPlace value) {
  std::visit(ValueReader{.json = json, .place = place}, value);
}

}  // namespace headrace::optimizer_json
