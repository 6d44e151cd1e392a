// The texts in the sources of the floors, and the names in them that messages give in their reader's words.
#pragma once

#include "headrace/tests/support/test.h"

namespace headrace::test {

struct SourceText {
  std::string file, text;  // a string literal without its quotes, escapes as they are written
};

// The string literals in C++ sources below these folders of the tree; not those of #include and of comments.
std::vector<SourceText> texts_in_sources(const std::vector<std::string>& folders);

// The name of an option, a call or an argument in C++, and nothing else: "LoaderOptions::threads",
// "Dataset::size()", "pulled()", "split".
bool is_name_in_cpp(const std::string& text);

// Those in these folders that messages hand to named() and its kin (devices/base/reader_words.h).
std::set<std::string> names_in_messages(const std::vector<std::string>& folders = {"devices", "cache", "pipeline",
                                                                                   "train", "tools"});

}  // namespace headrace::test
