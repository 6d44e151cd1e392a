#include "headrace/train/net/attribute_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/text.h"
#include "headrace/train/layers.h"

namespace headrace {
namespace {

std::optional<std::int64_t> whole_from_json(const nlohmann::ordered_json& json) {
  if (!json.is_number_integer()) return std::nullopt;
  if (json.is_number_unsigned() && !std::in_range<std::int64_t>(json.get<std::uint64_t>())) return std::nullopt;
  return json.get<std::int64_t>();
}

[[noreturn]] void refuse_attribute(const std::string& name, const std::string& wanted) {
  throw ConfigError("attribute '" + name + "' is not " + wanted);
}

// Adds the fields that it visits. A list of one number becomes that number.
class AttributeWriter final : public OptionVisitor {
 public:
  Attributes attributes;

 protected:
  void visit(const char* name, OptionPlace place) override {
    std::visit([&](const auto* value) { add(name, *value); }, place);
  }
  void visit_choice(const char* name, std::size_t& number, std::span<const char* const> choices) override {
    attributes.add(name, std::string(choices[number]));
  }

 private:
  template <typename Value>
  void add(const char* name, const Value& value) {
    if constexpr (std::is_same_v<Value, std::vector<std::int64_t>>) {
      if (value.size() == 1) return attributes.add(name, value.front());
      attributes.add(name, value);
    } else if constexpr (std::is_same_v<Value, int>) {
      attributes.add(name, std::int64_t{value});
    } else if constexpr (std::is_constructible_v<Attributes::Value, std::in_place_type_t<Value>>) {
      attributes.add(name, value);
    } else {
      throw std::logic_error(name);
    }
  }
};

// Reads the fields that it visits.
class AttributeReader final : public OptionVisitor {
 public:
  AttributeReader(const Attributes& attributes, int required) : attributes_(&attributes), required_(required) {}

  void refuse_unknown() const {
    for (const auto& [name, value] : attributes_->entries()) {
      if (std::ranges::find(known_, name) != known_.end()) continue;
      throw ConfigError("there is no attribute '" + name + "'" + did_you_mean(name, known_),
                        known_.empty() ? "it has none" : fmt::format("there are {}", fmt::join(known_, ", ")));
    }
  }

 protected:
  void visit(const char* name, OptionPlace place) override {
    if (is_given(name)) std::visit([&](auto* value) { read(name, *value); }, place);
  }
  void visit_choice(const char* name, std::size_t& number, std::span<const char* const> choices) override {
    if (!is_given(name)) return;
    const std::string word = attributes_->text(name);
    const auto found = std::ranges::find(choices, word);
    if (found == choices.end()) {
      throw ConfigError("attribute '" + std::string(name) + "' is '" + word + "', which is not known",
                        fmt::format("one of {}", fmt::join(choices, ", ")));
    }
    number = static_cast<std::size_t>(found - choices.begin());
  }

 private:
  bool is_given(const char* name) {
    const bool is_required = std::ssize(known_) < required_;
    known_.emplace_back(name);
    return is_required || attributes_->has(name);
  }

  void read(const char* name, bool& value) const { value = attributes_->flag(name); }
  void read(const char* name, int& value) const { value = attributes_->whole(name); }
  void read(const char* name, float& value) const { value = attributes_->number(name); }
  void read(const char* name, std::string& value) const { value = attributes_->text(name); }
  void read(const char* name, std::vector<std::int64_t>& value) const { value = attributes_->whole_numbers(name); }
  template <typename Value>
  void read(const char* name, Value& /*value*/) const {
    throw std::logic_error(name);
  }

  const Attributes* attributes_;
  std::ptrdiff_t required_;
  std::vector<std::string> known_;
};

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

const Attributes::Value& Attributes::find(const std::string& name) const {
  const auto found = std::ranges::find(entries_, name, &Entry::first);
  if (found == entries_.end()) throw ConfigError("there is no attribute '" + name + "'");
  return found->second;
}

bool Attributes::flag(const std::string& name) const {
  if (const bool* value = std::get_if<bool>(&find(name))) return *value;
  refuse_attribute(name, "true or false");
}

int Attributes::whole(const std::string& name) const {
  const auto* value = std::get_if<std::int64_t>(&find(name));
  if (value != nullptr && std::in_range<int>(*value)) return static_cast<int>(*value);
  refuse_attribute(name, "a whole number in range");
}

float Attributes::number(const std::string& name) const {
  if (const float* value = std::get_if<float>(&find(name))) return *value;
  if (const auto* value = std::get_if<std::int64_t>(&find(name))) return static_cast<float>(*value);
  refuse_attribute(name, "a number");
}

std::string Attributes::text(const std::string& name) const {
  if (const auto* value = std::get_if<std::string>(&find(name))) return *value;
  refuse_attribute(name, "a text");
}

Shape Attributes::shape(const std::string& name) const {
  const auto* value = std::get_if<std::vector<std::int64_t>>(&find(name));
  if (value == nullptr || value->size() > Shape::kMaxRank) refuse_attribute(name, "a shape");
  return Shape(*value);
}

std::vector<std::int64_t> Attributes::whole_numbers(const std::string& name) const {
  const Value& value = find(name);
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) return *list;
  if (const auto* one = std::get_if<std::int64_t>(&value)) return {*one};
  refuse_attribute(name, "a whole number or a list of them");
}

bool Attributes::has(const std::string& name) const noexcept {
  return std::ranges::find(entries_, name, &Entry::first) != entries_.end();
}

Attributes attributes_of(const std::function<void(OptionVisitor&)>& show) {
  AttributeWriter writer;
  show(writer);
  return std::move(writer.attributes);
}

void read_attributes(const Attributes& attributes, int required, const std::function<void(OptionVisitor&)>& show) {
  AttributeReader reader(attributes, required);
  show(reader);
  reader.refuse_unknown();
}

}  // namespace headrace
