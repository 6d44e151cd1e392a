// What something of a model, a layer or an update rule, can be made again from.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "headrace/devices/base/shape.h"

namespace headrace {

// Named values, in order.
class Attributes {
 public:
  using Value = std::variant<bool, std::int64_t, float, std::string, std::vector<std::int64_t>>;
  using Entry = std::pair<std::string, Value>;

  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries) : entries_(entries) {}

  void add(const std::string& name, Value value) { entries_.emplace_back(name, std::move(value)); }
  const std::vector<Entry>& entries() const noexcept { return entries_; }

  // The one of this name; ConfigError where there is none, or one of another type or range. A whole number is a
  // float, too.
  bool flag(const std::string& name) const;
  int whole(const std::string& name) const;
  float number(const std::string& name) const;
  std::string text(const std::string& name) const;
  Shape shape(const std::string& name) const;

  bool operator==(const Attributes&) const = default;

 private:
  const Value& find(const std::string& name) const;

  std::vector<Entry> entries_;
};

}  // namespace headrace
