#include "headrace/train/layers.h"

#include <algorithm>
#include <utility>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

[[noreturn]] void refuse_attribute(const std::string& name, const std::string& wanted) {
  throw ConfigError("attribute '" + name + "' is not " + wanted);
}

}  // namespace

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

HeightWidth Attributes::height_width(const std::string& name) const {
  const auto* pair = std::get_if<std::vector<std::int64_t>>(&find(name));
  if (pair == nullptr) return whole(name);
  if (pair->size() == 2 && std::in_range<int>(pair->front()) && std::in_range<int>(pair->back())) {
    return {static_cast<int>(pair->front()), static_cast<int>(pair->back())};
  }
  refuse_attribute(name, "a whole number, or two for height and width");
}

bool Attributes::has(const std::string& name) const noexcept {
  return std::ranges::find(entries_, name, &Entry::first) != entries_.end();
}

}  // namespace headrace
