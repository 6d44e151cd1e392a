// Names of archive members as relative paths in UTF-8.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace headrace {

// Returns the path without a leading "./" or "/".
std::string relative_path(std::string path);

// Returns a zip member's name. `is_utf8`: its flag says so. Without the flag it is UTF-8 if its bytes can be that
// (macOS and others omit the flag), otherwise code page 437, the format's own. `from_windows`: '\' separates names
// if there is no '/'.
std::string zip_path(std::string_view name, bool is_utf8, bool from_windows);

}  // namespace headrace
