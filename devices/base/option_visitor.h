// Options as data: a struct of options shows its members to a visitor, each with its name. One function per struct
// lists them; visitors write them to a text, read them from one, or inspect them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace headrace {

// A pointer to a member, which a visitor reads or writes.
using OptionPlace = std::variant<bool*, int*, std::uint8_t*, std::uint32_t*, std::int64_t*, std::uint64_t*, float*,
                                 double*, std::string*, std::filesystem::path*, std::vector<float>*,
                                 std::vector<double>*, std::vector<std::int64_t>*, std::vector<std::uint64_t>*,
                                 std::vector<std::string>*, std::vector<std::filesystem::path>*>;

// Names are literals: they live as long as the program.
class OptionVisitor {
 public:
  virtual ~OptionVisitor() = default;

  template <typename Value>
  requires std::is_constructible_v<OptionPlace, Value*>
  void operator()(const char* name, Value& value) { visit(name, OptionPlace(&value)); }

  // Visits an enumeration, whose values count up from 0, by the names of its values.
  template <typename Choice>
  requires std::is_enum_v<Choice>
  void operator()(const char* name, Choice& value, std::initializer_list<const char*> choices) {
    auto number = static_cast<std::size_t>(value);
    visit_choice(name, number, {choices.begin(), choices.size()});
    value = static_cast<Choice>(number);
  }

  // Visits a list of structs; `show` shows one of them to a visitor.
  template <typename Item>
  void operator()(const char* name, std::vector<Item>& items, void (*show)(Item&, OptionVisitor&)) {
    visit_list(name,
               {.count = items.size(),
                .resize = [&](std::size_t count) { items.resize(count); },
                .show = [&, show](std::size_t item, OptionVisitor& visitor) { show(items[item], visitor); }});
  }

 protected:
  struct List {
    std::size_t count = 0;
    std::function<void(std::size_t count)> resize;
    std::function<void(std::size_t item, OptionVisitor& visitor)> show;
  };

  virtual void visit(const char* name, OptionPlace place) = 0;
  // Visitors that never see choices or lists need not override these. `number` is the index of a choice, before
  // and after.
  virtual void visit_choice(const char* name, std::size_t& /*number*/, std::span<const char* const> /*choices*/) {
    throw std::logic_error(name);
  }
  virtual void visit_list(const char* name, const List& /*list*/) { throw std::logic_error(name); }
};

}  // namespace headrace
