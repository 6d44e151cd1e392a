// What is known of a terminal.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

// A line that is written over itself leaves so many columns free: the terminal's own "^C" fits behind it, and no
// terminal breaks it.
inline constexpr int kSpareColumns = 3;

// The terminal's present width; 80 where the stream is no terminal or does not say.
int terminal_columns(std::FILE* terminal) noexcept;
// The columns that a line of the stream may take: a terminal's width, any number elsewhere.
int line_columns(std::FILE* stream) noexcept;

// A part of a line; the lower its rank, the longer it stays where a line is short.
struct LinePart {
  std::string text;
  int rank = 0;
};
// The parts that fit into so many columns with " - " between them, each where it stands in the list.
std::string fit_line(const std::vector<LinePart>& parts, int columns);

}  // namespace headrace
