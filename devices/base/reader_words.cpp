#include "headrace/devices/base/reader_words.h"

#include <utility>

namespace headrace {
namespace {

std::string words_of_cpp(std::string_view name, std::string_view value) {
  std::string text(name);
  if (!value.empty()) text.append(" = ").append(value);
  return text;
}

ReaderWords& reader_words() {
  static auto* const words =
      new ReaderWords(words_of_cpp);  // never destroyed: threads may fail while the process ends
  return *words;
}

}  // namespace

void set_reader_words(ReaderWords words) { reader_words() = std::move(words); }

std::string named(std::string_view option) { return named(option, {}); }

std::string named(std::string_view option, std::string_view value) { return reader_words()(option, value); }

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

}  // namespace headrace
