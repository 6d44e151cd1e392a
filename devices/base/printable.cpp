#include "headrace/devices/base/printable.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

namespace headrace {
namespace {

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 0;  // 0: not UTF-8
};

// Returns the first code point. REQUIRES: the text is not empty.
CodePoint first_code_point(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(text[at]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {.value = lead, .bytes = 1};
  if (lead < 0xC2 || lead > 0xF4) return {};
  const std::size_t bytes = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (text.size() < bytes) return {};
  std::uint32_t value = lead & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3FU);
  }
  const bool overlong = (bytes == 3 && value < 0x800) || (bytes == 4 && value < 0x10000);
  const bool surrogate = value >= 0xD800 && value < 0xE000;
  if (overlong || surrogate || value > 0x10FFFF) return {};
  return {.value = value, .bytes = bytes};
}

bool is_control(std::uint32_t code) { return code < 0x20 || (code >= 0x7F && code < 0xA0); }

// Returns whether the code is a mark of direction or a separator of lines or paragraphs.
bool is_unseen(std::uint32_t code) {
  return code == 0x61C || code == 0x200E || code == 0x200F || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

std::string written_out(std::uint32_t code) {
  switch (code) {
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    default: return code < 0x80 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
  }
}

std::string written_out(std::string_view text, bool keep_newlines) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const CodePoint code = first_code_point(text);
    if (code.bytes == 0) {
      result += fmt::format("\\x{:02x}", static_cast<std::uint8_t>(text[0]));
    } else if ((is_control(code.value) || is_unseen(code.value)) && !(keep_newlines && code.value == '\n')) {
      result += written_out(code.value);
    } else {
      result += text.substr(0, code.bytes);
    }
    text.remove_prefix(code.bytes == 0 ? 1 : code.bytes);
  }
  return result;
}

}  // namespace

std::string printable(std::string_view text) { return written_out(text, false); }

std::string printable_lines(std::string_view text) { return written_out(text, true); }

}  // namespace headrace
