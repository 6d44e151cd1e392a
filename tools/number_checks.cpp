#include "headrace/tools/number_checks.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace headrace::tools {
namespace {

constexpr std::uint64_t kMaxInt = std::numeric_limits<int>::max();
constexpr std::uint64_t kMaxSigned = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t kMaxUnsigned = std::numeric_limits<std::uint64_t>::max();

struct Limits {
  const char* option;
  std::uint64_t least;
  std::uint64_t most;
};
constexpr Limits kLimits[] = {
    {"--global-batch", 1, kMaxSigned},
    {"--epochs", 1, kMaxInt},
    {"--seed", 0, kMaxUnsigned},
    {"--threads", 0, 1024},
    {"--replicas", 1, 1023},
    {"--prefetch", 0, 1024},
    {"--start-step", 0, kMaxSigned},
    {"--steps-per-epoch", 0, kMaxSigned},
    {"--stop-after-steps", 0, kMaxSigned},
    {"--headspace", 0, kMaxSigned},
    {"--runs", 1, kMaxInt},
    {"--profile-epoch", 1, kMaxInt},
    {"--accumulate", 1, kMaxInt},
    {"--consumer-us", 0, kMaxSigned / 1000},
    {"--examine", 0, kMaxUnsigned},
};

// Digits alone, or hexadecimal ones after 0x.
std::optional<std::uint64_t> whole_number(std::string_view text) {
  const bool is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (is_hexadecimal) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, is_hexadecimal ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// What it takes, for a message.
std::string range_of(const Limits& limits) {
  const std::string least = std::to_string(limits.least);
  return "takes a whole number from " + least + " to " + std::to_string(limits.most);
}

}  // namespace

void check_numbers(CLI::App& command) {
  for (const Limits& limits : kLimits) {
    CLI::Option* option = command.get_option_no_throw(limits.option);
    if (option == nullptr) continue;
    // Handed on as plain digits: CLI11 would read 010 as 8.
    option->transform(CLI::Validator(
        [limits](std::string& text) -> std::string {
          const std::optional<std::uint64_t> value = whole_number(text);
          if (!value || *value < limits.least || *value > limits.most) return range_of(limits) + ", not " + text;
          text = std::to_string(*value);
          return {};
        },
        ""));
  }
}

}  // namespace headrace::tools
