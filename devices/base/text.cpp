#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string_view>
#include <system_error>

#include "headrace/devices/base/sizes.h"
#include "headrace/devices/base/text.h"

namespace headrace {

std::optional<std::uint64_t> parse_size(std::string_view text) {
  static constexpr std::string_view kUnits = "KMGT";
  std::uint64_t unit = 1;
  if (!text.empty()) {
    const auto letter = static_cast<char>(std::toupper(static_cast<unsigned char>(text.back())));
    if (const std::size_t at = kUnits.find(letter); at != std::string_view::npos) {
      unit <<= 10 * (at + 1);
      text.remove_suffix(1);
    }
  }
  std::uint64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return checked_product({count, unit});
}

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

namespace {

constexpr std::size_t kMinPrefix = 3;
constexpr std::size_t kMaxNames = 10'000;

char lower(char letter) { return static_cast<char>(std::tolower(static_cast<unsigned char>(letter))); }

bool begins_with(std::string_view text, std::string_view start) {
  return start.size() >= kMinPrefix && text.starts_with(start);
}

int allowed_edits(std::string_view known) { return std::max(1, static_cast<int>(known.size() / 3)); }

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table of distances between prefixes (Damerau's, without edits inside a swap).
  std::vector<int> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      const bool swapped =
          i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  int smallest = std::numeric_limits<int>::max();
  for (const std::string& name : known) {
    const bool begins = begins_with(name, word) || begins_with(word, name);
    const int distance = edit_distance(word, name);
    if (distance >= smallest || (distance > allowed_edits(name) && !begins)) continue;
    smallest = distance;
    best = name;
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const std::string meant = nearest(word, known);
  return meant.empty() ? std::string() : ": did you mean '" + meant + "'?";
}

std::string did_you_mean_path(const std::filesystem::path& missing) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path there, wrong, rest;  // the existing part, the first missing name, the rest
  for (const fs::path& part : missing.lexically_normal()) {
    if (!wrong.empty()) {
      rest /= part;
    } else if (fs::exists(there / part, error)) {
      there /= part;
    } else {
      wrong = part;
    }
  }
  if (wrong.empty() || wrong.native().find('\0') != std::string::npos) return {};
  std::vector<std::string> names;
  fs::directory_iterator at(there.empty() ? "." : there, fs::directory_options::skip_permission_denied, error);
  for (; !error && at != fs::directory_iterator() && names.size() < kMaxNames; at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  std::ranges::sort(names);
  const std::string meant = nearest(wrong.string(), names);
  if (meant.empty()) return {};
  const fs::path whole = rest.empty() ? there / meant : there / meant / rest;
  return ": did you mean '" + printable((fs::exists(whole, error) ? whole : there / meant).string()) + "'?";
}

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
