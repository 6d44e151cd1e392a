// Text from outside that is safe to show: names in files and archives may hold what a terminal obeys.
#pragma once

#include <string>
#include <string_view>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

// Writes out what a terminal would obey and what a reader would not see: control characters, a newline among them
// ("\n", "\x1b", "\x00", "\u009b"), bytes that are no UTF-8 ("\xe9"), marks that turn the direction of writing or
// end a line ("\u202e"). A backslash stays, so that nothing changes when it is done twice.
std::string printable(std::string_view text);

// Does so within each line: newlines stay.
std::string printable_lines(std::string_view text);

}  // namespace headrace
