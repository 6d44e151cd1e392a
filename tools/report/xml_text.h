// Escapes text in a page.
#pragma once

#include <string>
#include <string_view>

namespace headrace::tools {

// Escapes markup for the content of an element and for an attribute in double quotes, and replaces what XML cannot
// hold (bytes that are not UTF-8, control characters) with U+FFFD.
std::string xml_text(std::string_view text);

}  // namespace headrace::tools
