// Options as data: a struct of options shows its fields to a visitor, each with its name and the sentence that
// explains it. One function per struct, each_field(), lists them; visitors write them to a text, read them from
// one, or explain them.
#pragma once

#include <algorithm>
#include <array>
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

#include "headrace/devices/base/error.h"

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
  void operator()(const char* name, Value& value, const char* sentence = "") {
    sentence_ = sentence;
    visit(name, OptionPlace(&value));
  }

  // Visit a list of N numbers. By around_zero() people may write one number, for minus it and it, or leave out all
  // but the first two, which are then 0; by fixed_or_range() one number for both.
  template <std::size_t N>
  void operator()(const char* name, std::array<float, N>& values, const char* sentence = "") {
    sentence_ = sentence;
    visit_numbers(name, values, Short::kNone);
  }
  template <std::size_t N>
  void around_zero(const char* name, std::array<float, N>& values, const char* sentence) {
    sentence_ = sentence;
    visit_numbers(name, values, Short::kAroundZero);
  }
  void fixed_or_range(const char* name, std::array<float, 2>& values, const char* sentence) {
    sentence_ = sentence;
    visit_numbers(name, values, Short::kFixed);
  }

  // Visits an enumeration, whose values count up from 0, by the names of its values: those that choice_names() of
  // its type returns.
  template <typename Choice>
  requires std::is_enum_v<Choice>
  void operator()(const char* name, Choice& value, const char* sentence) {
    static constexpr auto kNames = choice_names(Choice{});
    sentence_ = sentence;
    auto number = static_cast<std::size_t>(value);
    visit_choice(name, number, kNames);
    value = static_cast<Choice>(number);
  }
  template <typename Choice>
  requires std::is_enum_v<Choice>
  void operator()(const char* name, Choice& value, const char* sentence,
                  std::initializer_list<const char*> choices) {
    sentence_ = sentence;
    auto number = static_cast<std::size_t>(value);
    visit_choice(name, number, {choices.begin(), choices.size()});
    value = static_cast<Choice>(number);
  }

  // Visits a list of structs that have fields.
  template <typename Item>
  requires requires(Item item, OptionVisitor& visitor) { item.each_field(visitor); }
  void operator()(const char* name, std::vector<Item>& items, const char* sentence) {
    sentence_ = sentence;
    visit_list(name, {.count = items.size(),
                      .resize = [&](std::size_t count) { items.resize(count); },
                      .show = [&](std::size_t item, OptionVisitor& visitor) { items[item].each_field(visitor); }});
  }

 protected:
  struct List {
    std::size_t count = 0;
    std::function<void(std::size_t count)> resize;
    std::function<void(std::size_t item, OptionVisitor& visitor)> show;
  };

  // Returns what explains the option that is visited.
  const char* sentence() const noexcept { return sentence_; }

  virtual void visit(const char* name, OptionPlace place) = 0;
  // The short form of a list of numbers that people may write.
  enum class Short { kNone, kAroundZero, kFixed };
  // By default as a list of any length. Throws ConfigError if it then has another.
  virtual void visit_numbers(const char* name, std::span<float> values, Short form) {
    std::vector<float> list(values.begin(), values.end());
    visit(name, OptionPlace(&list));
    if (take(list, values, form)) return;
    throw ConfigError(std::string(name) + " has " + std::to_string(list.size()) + " numbers where " +
                      std::to_string(values.size()) + " are needed");
  }
  // Set `values` from what was written. Return false if the form does not allow it.
  static bool take(const std::vector<float>& written, std::span<float> values, Short form) {
    const bool first_two = form == Short::kAroundZero && written.size() == 2;
    if (!first_two && written.size() != values.size()) return false;
    std::fill(std::copy(written.begin(), written.end(), values.begin()), values.end(), 0.0F);
    return true;
  }
  static bool take(float written, std::span<float> values, Short form) {
    if (form == Short::kAroundZero) return take(std::vector{-written, written}, values, form);
    return form == Short::kFixed && take(std::vector{written, written}, values, form);
  }
  // Visitors that never see choices or lists need not override these. `number` is the index of a choice, before
  // and after.
  virtual void visit_choice(const char* name, std::size_t& /*number*/, std::span<const char* const> /*choices*/) {
    throw std::logic_error(name);
  }
  virtual void visit_list(const char* name, const List& /*list*/) { throw std::logic_error(name); }

 private:
  const char* sentence_ = "";
};

// Shows the fields of a struct to a visitor. A struct that knows no visitors has such a function beside it.
template <typename Options>
requires requires(Options options, OptionVisitor& visit) { options.each_field(visit); }
void show(Options& options, OptionVisitor& visit) { options.each_field(visit); }

}  // namespace headrace
