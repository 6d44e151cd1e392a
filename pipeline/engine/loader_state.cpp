#include "headrace/pipeline/loader.h"

#include <fmt/format.h>

#include <charconv>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/hash.h"

namespace headrace {
namespace {

constexpr std::string_view kStateHeader = "headrace-loader-1 ";

[[noreturn]] void refuse_state(std::string_view text) {
  throw ConfigError(fmt::format("'{}' is no loader state", text.substr(0, 80)),
                    "expected one line: headrace-loader-1 <fingerprint> <sequence>");
}

// The whole of `digits` as a number.
std::uint64_t number(std::string_view digits, int base, std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty()) refuse_state(text);
  return value;
}

}  // namespace

std::string LoaderState::serialize() const {
  return fmt::format("{}{} {}", kStateHeader, to_hex(fingerprint), sequence);
}

LoaderState LoaderState::parse(std::string_view text) {
  std::string_view rest = text;
  if (rest.ends_with('\n')) rest.remove_suffix(1);
  if (!rest.starts_with(kStateHeader)) refuse_state(text);
  rest.remove_prefix(kStateHeader.size());
  const std::size_t space = rest.find(' ');
  if (space != 16) refuse_state(text);
  return {.fingerprint = number(rest.substr(0, space), 16, text),
          .sequence = number(rest.substr(space + 1), 10, text)};
}

}  // namespace headrace
