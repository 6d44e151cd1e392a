#include "headrace/devices/base/reader_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <utility>

namespace headrace {
namespace {

std::string words_of_cpp(std::string_view name, std::string_view value) {
  std::string text(name);
  if (!value.empty()) text.append(" = ").append(value);
  return text;
}

// Keeps all words ever set, because a thread may still use older ones; never destroyed: threads may fail while the
// process ends.
const ReaderWords* keep(ReaderWords words) {
  static auto* const mutex = new std::mutex;
  static auto* const all = new std::deque<ReaderWords>;
  const std::lock_guard lock(*mutex);
  return &all->emplace_back(std::move(words));
}

std::atomic<const ReaderWords*>& reader_words() {
  static std::atomic<const ReaderWords*> words = keep(words_of_cpp);
  return words;
}

}  // namespace

void set_reader_words(ReaderWords words) { reader_words() = keep(std::move(words)); }

std::string named(std::string_view option) { return named(option, {}); }

std::string named(std::string_view option, std::string_view value) {
  return (*reader_words().load())(option, value);
}

std::string named_or(std::string_view name, std::string_view words) {
  const std::string known = named(name);
  return known.empty() ? std::string(words) : known;
}

std::string advice(std::string_view text, const std::string& name) {
  if (name.empty()) return {};
  std::string said(text);
  if (const std::size_t at = said.find("{}"); at != std::string::npos) said.replace(at, 2, name);
  return said;
}

std::string joined(std::initializer_list<std::string> advice, std::string_view between) {
  std::string text;
  for (const std::string& one : advice) {
    if (!one.empty()) text.append(text.empty() ? "" : between).append(one);
  }
  return text;
}

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
