// Text within a page.
#pragma once

#include <string>
#include <string_view>

namespace headrace::tools {

// For the content of an element and for an attribute in double quotes: markup is escaped, and what XML cannot hold
// (bytes that are no UTF-8, control characters) becomes U+FFFD.
std::string xml_text(std::string_view text);

}  // namespace headrace::tools
