#include "headrace/devices/base/did_you_mean.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <system_error>

#include "headrace/devices/base/printable.h"

namespace headrace {
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

}  // namespace headrace
