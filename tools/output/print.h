// The command's text for people. All of it is printed here, so that external names cannot control the terminal.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <type_traits>

#include "headrace/devices/base/text.h"

namespace headrace::tools {

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

}  // namespace headrace::tools
