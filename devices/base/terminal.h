// Properties of a terminal.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

// Columns that a line that overwrites itself leaves free: the terminal's own "^C" fits after it, and no terminal
// wraps it.
inline constexpr int kSpareColumns = 3;

// Returns the terminal's current width; 80 if the stream is no terminal or does not say.
int terminal_columns(std::FILE* terminal) noexcept;
// Returns the maximum columns of a line of the stream: a terminal's width, unlimited elsewhere.
int line_columns(std::FILE* stream) noexcept;

// A part of a line; parts with higher ranks are dropped first if the line is too short.
struct LinePart {
  std::string text;
  int rank = 0;
};
// Returns the parts that fit into `columns` columns, joined by " - ", in the order of the list.
std::string fit_line(const std::vector<LinePart>& parts, int columns);

}  // namespace headrace
