// Rows of the pages that list parts with their options, printed from the fields.
#pragma once

#include <fmt/format.h>

#include "headrace/devices/base/reader_words.h"
#include "headrace/tests/support/data.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {

inline constexpr const char* kPartsHead = "| part | option | default | |\n| --- | --- | --- | --- |\n";

// A row of the table for each option. Every option has a sentence.
class OptionRows final : public OptionVisitor {
 public:
  explicit OptionRows(std::string part) : part_(std::move(part)) {}
  std::string text() const { return text_.empty() ? fmt::format("| `{}` | | | |\n", part_) : text_; }

 protected:
  void visit(const char* name, OptionPlace place) override {
    std::visit(
        [&](auto* value) { add(name, option_text([&](OptionVisitor& one) { one("", *value); }).substr(1), {}); },
        place);
  }
  void visit_choice(const char* name, std::size_t& number, std::span<const char* const> choices) override {
    std::string others;
    for (std::size_t i = 0; i < choices.size(); ++i)
      if (i != number) others += fmt::format("{}`{}`", others.empty() ? " Or " : ", ", choices[i]);
    add(name, choices[number], others + (others.empty() ? "" : "."));
  }
  void visit_list(const char* name, const List& /*list*/) override { add(name, "[]", {}); }

 private:
  void add(const char* name, const std::string& usual, const std::string& others) {
    const std::string explanation = sentence();
    EXPECT_TRUE(explanation.ends_with('.')) << part_ << "." << name << " has no sentence that explains it";
    text_ += fmt::format("| {} | `{}` | {} | {}{} |\n", text_.empty() ? "`" + part_ + "`" : "", name,
                         usual.empty() ? "" : "`" + usual + "`", explanation, others);
  }

  std::string part_, text_;
};

template <typename Options>
std::string rows_of(const std::string& part, Options options = {}) {
  OptionRows rows(part);
  show(options, rows);
  return rows.text();
}

// Compares the page with the file, which HEADRACE_PRINT_PARTS=1 writes anew.
inline void expect_page(const char* file, const std::string& page) {
  const std::string path = source_file(file);
  if (std::getenv("HEADRACE_PRINT_PARTS") != nullptr) std::ofstream(path) << page;
  const std::vector<std::byte> bytes = read_whole_file(path);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), page)
      << "run this test with HEADRACE_PRINT_PARTS=1 and look at what changed";
}

}  // namespace headrace::test
