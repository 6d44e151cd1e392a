#include "headrace/devices/base/terminal.h"

#include <sys/ioctl.h>

namespace headrace {

int terminal_columns(std::FILE* terminal) noexcept {
  constexpr int kUsualColumns = 80;
  winsize size{};
  const bool known = ::ioctl(::fileno(terminal), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsualColumns;
}

}  // namespace headrace
