// How messages name options and calls: in the words of who reads them. A message says LoaderOptions::threads to a
// C++ program, threads to a C or Python program and --threads on the command line, or leaves out advice that its
// reader cannot follow.
#pragma once

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

// Says a C++ name ("LoaderOptions::threads", "pulled()") in the reader's words; empty where the reader has nothing
// of the kind. `value` is what it shall be, empty: just the name is wanted.
using ReaderWords = std::function<std::string(std::string_view name, std::string_view value)>;

// Of all messages of this process from now on; those of C++ until then. Any thread may call it.
void set_reader_words(ReaderWords words);

// "LoaderOptions::threads", "--threads"; empty where the reader has no such option.
std::string named(std::string_view option);
// "ErrorPolicy::on_error = skip", "on_error='skip'", "--on-error skip".
std::string named(std::string_view option, std::string_view value);

// What a reader calls an option or a call of C++.
struct ReaderWord {
  std::string_view name;  // in C++
  std::string_view word;  // empty: the reader has nothing of the kind, and advice that names it is left out
};

// The word that a table has for the name, or else what `usual` makes of the name's last part ("threads",
// "size()").
template <typename Usual>
std::string word_of(std::span<const ReaderWord> words, std::string_view name, const Usual& usual) {
  const auto found = std::ranges::find(words, name, &ReaderWord::name);
  return found != words.end() ? std::string(found->word) : usual(name.substr(name.rfind(':') + 1));
}

// named(), or `words` where that is empty.
std::string named_or(std::string_view name, std::string_view words);

// A piece of advice with "{}" for what named() returned; empty where that is.
std::string advice(std::string_view text, const std::string& name);

// Those that are not empty, with `between` between them.
std::string joined(std::initializer_list<std::string> advice, std::string_view between = ", or ");

}  // namespace headrace
