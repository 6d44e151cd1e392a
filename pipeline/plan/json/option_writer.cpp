#include "headrace/pipeline/plan/json/option_writer.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <type_traits>

#include "headrace/devices/base/error.h"

namespace headrace::plan_json {
namespace {

using Written = nlohmann::ordered_json;

// The double with the fewest digits that is this float when it is rounded to one: 0.1, not 0.10000000149.
double shortest(float value) {
  const std::string digits = fmt::format("{}", value);
  double number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return static_cast<float>(number) == value ? number : value;
}

class ValueWriter {
 public:
  explicit ValueWriter(std::string path) : path_(std::move(path)) {}

  template <typename Value>
  Written operator()(const Value* value) const {
    return write(*value);
  }
  template <typename Item>
  Written operator()(const std::vector<Item>* values) const {
    if constexpr (std::is_same_v<Item, std::filesystem::path>) {
      if (values->size() == 1) return write(values->front());
    }
    Written list = Written::array();
    for (const Item& item : *values) list.push_back(write(item));
    return list;
  }

 private:
  template <typename Number>
  requires std::is_arithmetic_v<Number> Written write(Number value)
  const {
    if constexpr (std::is_floating_point_v<Number>) {
      if (!std::isfinite(value)) refuse(fmt::format("{} is no number that JSON has", value));
    }
    if constexpr (std::is_same_v<Number, float>) return shortest(value);
    return value;
  }
  Written write(const std::filesystem::path& path) const { return write(path.string()); }
  Written write(const std::string& text) const {
    Written value = text;
    try {
      value.dump();
    } catch (const Written::exception&) {
      refuse("the text is no UTF-8, which JSON is written in");
    }
    return value;
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw ConfigError(fmt::format("to_json(): {}: {}", path_, what), "give it another value");
  }

  std::string path_;
};

}  // namespace

void OptionWriter::visit(const char* name, OptionPlace place) {
  object_[name] = std::visit(ValueWriter(fmt::format("{}.{}", path_, name)), place);
}

void OptionWriter::visit_choice(const char* name, std::size_t& number, std::span<const char* const> choices) {
  object_[name] = choices[number];
}

void OptionWriter::visit_list(const char* name, const List& list) {
  Written items = Written::array();
  for (std::size_t i = 0; i < list.count; ++i) {
    OptionWriter writer(fmt::format("{}.{}[{}]", path_, name, i));
    list.show(i, writer);
    items.push_back(writer.take());
  }
  object_[name] = std::move(items);
}

}  // namespace headrace::plan_json
