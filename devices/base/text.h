// Text that people read: numbers, names from outside, suggestions, lines that fit a terminal.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/devices/base/api.h"

namespace headrace {

// Numbers in messages.

// Returns "1,281,167".
inline std::string with_commas(std::uint64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, 1, ',');
  return text;
}

// Returns "1 image", "12 images".
inline std::string count_of(std::uint64_t count, std::string_view what) {
  std::string text = with_commas(count);
  text.append(1, ' ').append(what);
  if (count != 1) text += 's';
  return text;
}

}  // namespace headrace

// Sizes that people write.

namespace HEADRACE_API headrace {

// Returns the bytes of "4096", "512M" or "2g": K, M, G and T are powers of 1024. std::nullopt for other text, and
// for sizes that do not fit.
std::optional<std::uint64_t> parse_size(std::string_view text);

}  // namespace headrace

// Makes text from outside safe to show: names in files and archives may hold terminal control sequences.

namespace HEADRACE_API headrace {

// Escapes characters that a terminal would obey or a reader would not see: control characters, including newlines
// ("\n", "\x1b", "\x00", "\u009b"), bytes that are not UTF-8 ("\xe9"), marks that change the direction of writing
// or end a line ("\u202e"). Backslashes stay, so the call is idempotent.
std::string printable(std::string_view text);

// Like printable(), but newlines stay.
std::string printable_lines(std::string_view text);

// Suggestions for names that do not exist.

// Returns the minimum number of insertions, removals, replacements and swaps of neighbours that turn `a` into `b`,
// ignoring case.
int edit_distance(std::string_view a, std::string_view b);

// Returns the nearest of `known`, the first on ties; empty if none is near: more than a third of the letters
// differ and neither name begins with the other (of three letters or more).
std::string nearest(std::string_view word, const std::vector<std::string>& known);

// Returns ": did you mean 'X'?", or an empty string.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

// Returns ": did you mean 'data/train'?" if a name in the missing path is near to an existing one, else an empty
// string. Looks at the first ten thousand names of one folder.
std::string did_you_mean_path(const std::filesystem::path& missing);

// Properties of a terminal.

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
