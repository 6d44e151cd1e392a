#include "headrace/pipeline/source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "headrace/devices/base/counted.h"

namespace headrace {

std::string describe(const std::vector<LeftOut>& left_out) {
  if (left_out.empty()) return {};
  std::uint64_t files = 0;
  std::vector<std::string> parts;
  bool unread = false;
  for (const LeftOut& one : left_out) {
    files += one.files;
    parts.push_back(fmt::format("{} {}", with_commas(one.files), one.what));
    unread = unread || one.what.starts_with('.');
  }
  return fmt::format("{} left out: {}{}", count_of(files, "file"), fmt::join(parts, ", "),
                     unread ? "; Headrace reads JPEG and PNG" : "");
}

std::string describe(const std::vector<SourceColumn>& columns) {
  constexpr std::size_t kMaxNamed = 12;
  std::vector<std::string> parts;
  std::size_t more = 0;
  for (const SourceColumn& column : columns) {
    if (!column.field.empty()) continue;
    if (parts.size() < kMaxNamed) {
      parts.push_back(fmt::format("{} ({})", column.name, column.holds));
    } else {
      ++more;
    }
  }
  if (more > 0) parts.push_back(fmt::format("and {} more", more));
  return parts.empty() ? std::string() : fmt::format("left out of each record: {}", fmt::join(parts, ", "));
}

}  // namespace headrace
