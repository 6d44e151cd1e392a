// The command's text for people, its progress line and its exit status. All text is printed here, so that external
// names cannot control the terminal.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <type_traits>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/text.h"

namespace headrace::tools {

// The command's text for people. All of it is printed here, so that external names cannot control the terminal.

// A text of several lines, whose newlines stay.
struct Lines {
  std::string_view text;
};

template <typename T>
auto shown(const T& value) {
  if constexpr (std::is_same_v<T, Lines>) {
    return printable_lines(value.text);
  } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
    return printable(value.native());
  } else if constexpr (std::convertible_to<const T&, std::string_view>) {
    return printable(value);
  } else {
    return value;
  }
}
template <typename T>
using Shown = decltype(shown(std::declval<const T&>()));

// Like fmt::print(), but escapes unprintable characters of texts and paths among `args` (text.h). The stream
// remembers a failed write (std::ferror).
template <typename... Args>
void print(std::FILE* to, fmt::format_string<Shown<Args>...> format, const Args&... args) {
  const std::string text = fmt::format(format, shown(args)...);
  std::fwrite(text.data(), 1, text.size(), to);
}

// One line on standard error that is overwritten; only on a terminal.

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Shows the text, at most five times a second; drops texts in between.
  void show(const std::string& text);
  // Clears the line; the cursor is at its start.
  void clear();

 private:
  bool terminal_;
  bool shown_ = false;
  Stopwatch since_shown_;
};

// The exit status of the command.

inline constexpr int kRunFailed = 1, kWrongUsage = 2;
inline constexpr int kRestart = 75;  // EX_TEMPFAIL of sysexits.h

// Thrown when a signal ended the run, cleanly and with nothing lost.
class StoppedBySignal : public Error {
 public:
  StoppedBySignal(int signal, const std::string& message)
      : Error(ErrorCode::kCancelled, message), signal_(signal) {}

  int signal() const noexcept { return signal_; }

 private:
  int signal_;
};

// Thrown by a worker that ends because of another one: a launcher may start all of them again.
class EndedByAnother : public Error {
 public:
  explicit EndedByAnother(const Error& error) : Error(error.code(), error.message(), error.hint()) {}
};

// Returns 128 + the signal's number for StoppedBySignal, kRestart for EndedByAnother, and kWrongUsage only for an
// impossible request, a ConfigError, unless only together with other workers it is one. Unreadable data, a loss
// that is not a number, and a failing device or disk are a failed run.
int exit_status(const std::exception& error) noexcept;

}  // namespace headrace::tools
