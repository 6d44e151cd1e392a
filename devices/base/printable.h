// Makes text from outside safe to show: names in files and archives may hold terminal control sequences.
#pragma once

#include <string>
#include <string_view>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

// Escapes characters that a terminal would obey or a reader would not see: control characters, including newlines
// ("\n", "\x1b", "\x00", "\u009b"), bytes that are not UTF-8 ("\xe9"), marks that change the direction of writing
// or end a line ("\u202e"). Backslashes stay, so the call is idempotent.
std::string printable(std::string_view text);

// Like printable(), but newlines stay.
std::string printable_lines(std::string_view text);

}  // namespace headrace
