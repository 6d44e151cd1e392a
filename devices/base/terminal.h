// What is known of a terminal.
#pragma once

#include <cstdio>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

// A line that is written over itself leaves so many columns free: the terminal's own "^C" fits behind it, and no
// terminal breaks it.
inline constexpr int kSpareColumns = 3;

// The terminal's present width; 80 where the stream is no terminal or does not say.
int terminal_columns(std::FILE* terminal) noexcept;

}  // namespace headrace
