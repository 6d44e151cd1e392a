#include "headrace/tools/progress_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace headrace::tools {
namespace {

constexpr double kSecondsBetween = 0.2;
constexpr std::size_t kUsualColumns = 80;
constexpr std::size_t kSpare = 3;  // for the terminal's own "^C"

std::size_t columns() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsualColumns;
}

}  // namespace

ProgressLine::ProgressLine() : terminal_(::isatty(STDERR_FILENO) == 1) {}

void ProgressLine::show(const std::string& text) {
  if (!terminal_ || (shown_ && since_shown_.seconds() < kSecondsBetween)) return;
  const std::size_t room = columns();
  const std::string fitting = text.substr(0, room - std::min(room, kSpare));
  std::fprintf(stderr, "\r\033[K%s", fitting.c_str());
  shown_ = true;
  since_shown_.restart();
}

void ProgressLine::clear() {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

}  // namespace headrace::tools
