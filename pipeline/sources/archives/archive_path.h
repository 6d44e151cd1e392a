// Names of archive members as relative paths in UTF-8.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace headrace {

// Without "./" and "/" before it.
std::string relative_path(std::string path);

// A zip member's name. `is_utf8`: its flag says so. Without the flag it is UTF-8 where its bytes can be that
// (macOS and others leave the flag out), else of code page 437, the format's own. `from_windows`: '\' separates
// names where there is no '/'.
std::string zip_path(std::string_view name, bool is_utf8, bool from_windows);

}  // namespace headrace
