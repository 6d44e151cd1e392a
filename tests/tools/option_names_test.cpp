// Every option that a message names is one that its reader has: in C++ it is there, a command has the option or is
// known to have none, and no message spells out what another reader calls otherwise.
// tests/bindings/c/option_names_test.cpp and tests/bindings/python/test_errors.py ask the same of C and Python.
#include <regex>

#include "headrace/tests/support/data.h"
#include "headrace/tests/support/message_names.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

void add_matches(const std::string& text, const std::regex& pattern, std::set<std::string>& names) {
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) names.insert((*at)[1]);
}

std::string all_headers() {
  std::string text;
  for (const std::string folder : {"cache", "pipeline", "train", "tools"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source_file(folder))) {
      if (entry.path().extension() == ".h") text += text_of(entry.path());
    }
  }
  return text;
}

// Between the braces of the struct or class; empty where there is none of the name.
std::string body_of(const std::string& type, const std::string& headers) {
  std::smatch found;
  if (std::regex_search(headers, found, std::regex("using " + type + " = (\\w+);")))
    return body_of(found[1], headers);
  if (!std::regex_search(headers, found,
                         std::regex("(struct|class) (HEADRACE_\\w+ )?" + type + " (final )?(: [^{;]*)?\\{")))
    return {};
  const std::size_t begin = static_cast<std::size_t>(found.position() + found.length());
  std::size_t end = begin;
  for (int depth = 1; end < headers.size() && depth > 0; ++end) {
    depth += headers[end] == '{' ? 1 : headers[end] == '}' ? -1 : 0;
  }
  return headers.substr(begin, end - begin);
}

std::string usual_flag(const std::string& name) {
  std::string flag = "--" + name.substr(name.rfind(':') + 1);
  if (flag.ends_with("_bytes")) flag.resize(flag.size() - 6);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

// What no command has is left out of its messages; what one calls otherwise stands in a table.
TEST(OptionNames, AreKnownToTheCommand) {
  const std::set<std::string> named = names_in_messages();
  EXPECT_GT(named.size(), 45U) << "the sources were not found";
  std::set<std::string> options;
  for (const SourceText& one : texts_in_sources({"tools"})) options.insert(one.text);
  const std::string words = text_of(source_file("tools/options/command_words.cpp"));
  const std::regex row(R"re(\{"([^"]+)", "([^"]*)"\})re");
  std::set<std::string> known;
  for (std::sregex_iterator at(words.begin(), words.end(), row), end; at != end; ++at) {
    const std::string name = (*at)[1], word = (*at)[2];
    known.insert(name);
    EXPECT_TRUE(options.contains(word)) << name << ": no command has " << word;
    EXPECT_NE(word, usual_flag(name)) << name << " needs no row";
  }
  EXPECT_GT(known.size(), 5U) << "the table was not found";
  add_matches(words, std::regex("name == \"([^\"]+)\""), known);
  for (const std::string& name : known) EXPECT_TRUE(named.contains(name)) << name << " is named nowhere";
}

TEST(OptionNames, AreThereInCpp) {
  const std::string headers = all_headers();
  for (const std::string& name : names_in_messages()) {
    const std::size_t colons = name.find("::");
    const bool call = name.ends_with("()");
    const std::string scope = colons == std::string::npos ? headers : body_of(name.substr(0, colons), headers);
    std::string member = colons == std::string::npos ? name : name.substr(colons + 2);
    if (call) member.resize(member.size() - 2);
    EXPECT_TRUE(std::regex_search(scope, std::regex("\\b" + member + (call ? "\\(" : "\\b"))))
        << name << (scope.empty() ? ": there is no such type" : ": there is no such member");
  }
}

// What named() gives may be an option of Python or of the command; what stands in a text is C++'s to every reader.
TEST(OptionNames, AreSpelledOutByNoMessageOfTheFloors) {
  const std::regex in_cpp(R"(\w(Options|Policy|Parts|Filter)::|\w(Options|Policy|Parts)\{|\{\.[a-z])");
  EXPECT_TRUE(std::regex_search("use {.from_logits = true}", in_cpp) &&
              std::regex_search("set StepOptions::accumulate to 2", in_cpp));
  for (const SourceText& one : texts_in_sources({"devices", "cache", "pipeline", "train"})) {
    EXPECT_TRUE(is_name_in_cpp(one.text) || !std::regex_search(one.text, in_cpp))
        << one.file << ": \"" << one.text << "\"; name it with named() (devices/base/reader_words.h)";
  }
}

}  // namespace
}  // namespace headrace::test
