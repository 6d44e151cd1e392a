#include "headrace/devices/base/option_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace headrace {
namespace {

template <typename Value>
std::string option_value_text(const Value& value) {
  return fmt::format("{}", value);
}
std::string option_value_text(const std::filesystem::path& path) { return path.string(); }
template <typename Item>
std::string option_value_text(const std::vector<Item>& items) {
  std::string text = "[";
  for (const Item& item : items) text += (text.size() > 1 ? ", " : "") + option_value_text(item);
  return text + "]";
}

}  // namespace

void OptionText::add(const char* name, const std::string& value) {
  text_ += fmt::format("{}{}={}", text_.empty() ? "" : ", ", name, value);
}

void OptionText::visit(const char* name, OptionPlace place) {
  std::visit([&](const auto* value) { add(name, option_value_text(*value)); }, place);
}

void OptionText::visit_choice(const char* name, std::size_t& number, std::span<const char* const> choices) {
  add(name, choices[number]);
}

void OptionText::visit_list(const char* name, const List& list) {
  std::string items;
  for (std::size_t i = 0; i < list.count; ++i)
    items += fmt::format("{}({})", i > 0 ? ", " : "", option_text([&](OptionVisitor& v) { list.show(i, v); }));
  add(name, "[" + items + "]");
}

}  // namespace headrace
