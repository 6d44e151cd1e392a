#include <cctype>
#include <regex>

#include "headrace/tests/support/data.h"
#include "headrace/tests/support/message_names.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

// Walks through C++ as far as telling string literals from all else takes.
class Literals {
 public:
  explicit Literals(const std::string& code) : code_(code) {}

  std::vector<std::string> all() {
    while (at_ < code_.size()) step();
    return std::move(found_);
  }

 private:
  void step() {
    if (starts("//") || starts("#include")) return void(at_ = code_.find('\n', at_));
    if (starts("/*")) return void(at_ = after(code_.find("*/", at_), 2));
    if (starts("R\"(")) return take(at_ + 3, code_.find(")\"", at_), 2);
    if (code_[at_] == '"') return take(at_ + 1, closing('"'), 1);
    // 1'000 is a number.
    const bool digit = at_ > 0 && std::isalnum(static_cast<unsigned char>(code_[at_ - 1])) != 0;
    at_ = code_[at_] == '\'' && !digit ? after(closing('\''), 1) : at_ + 1;
  }

  bool starts(const char* word) const {
    return code_.compare(at_, std::char_traits<char>::length(word), word) == 0;
  }
  static std::size_t after(std::size_t end, std::size_t length) {
    return end == std::string::npos ? end : end + length;
  }
  std::size_t closing(char quote) const {
    for (std::size_t i = at_ + 1; i < code_.size(); ++i) {
      if (code_[i] == '\\') {
        ++i;
      } else if (code_[i] == quote) {
        return i;
      }
    }
    return std::string::npos;
  }
  void take(std::size_t begin, std::size_t end, std::size_t quotes) {
    found_.push_back(code_.substr(begin, end - begin));
    at_ = after(end, quotes);
  }

  const std::string& code_;
  std::size_t at_ = 0;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<SourceText> texts_in_sources(const std::vector<std::string>& folders) {
  std::vector<SourceText> all;
  for (const std::string& folder : folders) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source_file(folder))) {
      const auto extension = entry.path().extension();
      if (extension != ".cpp" && extension != ".h") continue;
      const std::string code = text_of(entry.path());
      for (std::string& text : Literals(code).all()) all.push_back({entry.path().string(), std::move(text)});
    }
  }
  return all;
}

bool is_name_in_cpp(const std::string& text) {
  static const std::regex name(R"([A-Z]\w+::\w+(\(\))?|(pulled|generator|convert_dataset)\(\)|split)");
  return std::regex_match(text, name);
}

std::set<std::string> names_in_messages(const std::vector<std::string>& folders) {
  std::set<std::string> names;
  for (const SourceText& one : texts_in_sources(folders)) {
    if (!one.file.ends_with("command_line.cpp") && is_name_in_cpp(one.text)) names.insert(one.text);
  }
  return names;
}

}  // namespace headrace::test
