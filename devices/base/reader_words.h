// Names of options: in messages as the reader's language spells them, in descriptions and fingerprints as text.
#pragma once

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/option_visitor.h"

namespace HEADRACE_API headrace {

// Names of options and calls in messages, in their reader's language. A message says LoaderOptions::threads to a
// C++ program, threads to a C or Python program and --threads on the command line, or leaves out advice that its
// reader cannot follow.

// Translates a C++ name ("LoaderOptions::threads", "pulled()") for the reader; empty if the reader has no
// equivalent. `value` is the value to set; empty: only the name is wanted.
using ReaderWords = std::function<std::string(std::string_view name, std::string_view value)>;

// Sets the words of all later messages of this process, instead of those of C++. Thread-safe.
void set_reader_words(ReaderWords words);

// Returns "LoaderOptions::threads", "--threads"; empty if the reader has no such option.
std::string named(std::string_view option);
// Returns "ErrorPolicy::on_error = skip", "on_error='skip'", "--on-error skip".
std::string named(std::string_view option, std::string_view value);

// The reader's word for an option or call of C++.
struct ReaderWord {
  std::string_view name;  // in C++
  std::string_view word;  // empty: there is no equivalent, and advice that names it is left out
};

// Returns the table's word for the name, or else `usual` of the name's last part ("threads", "size()").
template <typename Usual>
std::string word_of(std::span<const ReaderWord> words, std::string_view name, const Usual& usual) {
  const auto found = std::ranges::find(words, name, &ReaderWord::name);
  return found != words.end() ? std::string(found->word) : usual(name.substr(name.rfind(':') + 1));
}

// Returns named(), or `words` if that is empty.
std::string named_or(std::string_view name, std::string_view words);

// Returns the advice in `text` with "{}" replaced by `name`, a result of named(); empty if `name` is.
std::string advice(std::string_view text, const std::string& name);

// Joins the non-empty pieces of advice with `between`.
std::string joined(std::initializer_list<std::string> advice, std::string_view between = ", or ");

// Options as text, for descriptions and fingerprints.

// Writes the options that it visits: "size=32, fill=[0], padding=zero".
class OptionText final : public OptionVisitor {
 public:
  std::string take() { return std::move(text_); }

 protected:
  void visit(const char* name, OptionPlace place) override;
  void visit_choice(const char* name, std::size_t& number, std::span<const char* const> choices) override;
  void visit_list(const char* name, const List& list) override;

 private:
  void add(const char* name, const std::string& value);

  std::string text_;
};

// `show` shows the options to a visitor.
template <typename Show>
HEADRACE_HIDDEN std::string option_text(const Show& show) {
  OptionText text;
  show(text);
  return text.take();
}

// Returns "shuffle(seed=7, reshuffle_each_epoch=true)".
template <typename Options>
HEADRACE_HIDDEN std::string described(const char* name, Options options) {
  return std::string(name) + '(' + option_text([&](OptionVisitor& visit) { options.each_field(visit); }) + ')';
}

}  // namespace headrace
