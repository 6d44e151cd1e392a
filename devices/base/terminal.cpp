#include "headrace/devices/base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string_view>

namespace headrace {

int terminal_columns(std::FILE* terminal) noexcept {
  constexpr int kUsualColumns = 80;
  winsize size{};
  const bool known = ::ioctl(::fileno(terminal), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsualColumns;
}

int line_columns(std::FILE* stream) noexcept {
  return ::isatty(::fileno(stream)) == 1 ? terminal_columns(stream) : std::numeric_limits<int>::max();
}

std::string fit_line(const std::vector<LinePart>& parts, int columns) {
  constexpr std::string_view kBetween = " - ";
  std::vector<std::size_t> by_rank(parts.size());
  std::iota(by_rank.begin(), by_rank.end(), 0);
  std::ranges::stable_sort(by_rank, {}, [&](std::size_t part) { return parts[part].rank; });
  std::vector<bool> fits(parts.size());
  std::size_t left = static_cast<std::size_t>(std::max(0, columns)) + kBetween.size();
  for (const std::size_t part : by_rank) {
    const std::size_t size = parts[part].text.size() + kBetween.size();
    fits[part] = size <= left;
    if (fits[part]) left -= size;
  }
  std::string line;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    if (fits[part]) line.append(line.empty() ? "" : kBetween).append(parts[part].text);
  }
  return line;
}

}  // namespace headrace
