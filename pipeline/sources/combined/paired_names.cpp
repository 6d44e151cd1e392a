// Whether the images that zip() puts side by side have one name.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/sources/combined/combined_sources.h"
#include "headrace/pipeline/sources/image_names.h"

namespace headrace {
namespace {

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_numeral(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Returns whether a word ends between two characters: at a mark, or where letters and digits meet.
bool is_boundary(char before, char after) {
  const auto is_mark = [](char c) {
    return static_cast<unsigned char>(c) < 0x80 && !is_letter(c) && !is_numeral(c);
  };
  return is_mark(before) || is_mark(after) || (is_letter(before) && is_numeral(after)) ||
         (is_numeral(before) && is_letter(after));
}

// The names of a part's files.
class PartNames {
 public:
  explicit PartNames(const JoinedPart& part) : part_(part) {
    const std::string first = name(0);
    std::size_t begin = first.size(), end = first.size();
    for (std::uint64_t i = 1; i < part.size && (begin > 0 || end > 0); ++i) {
      const std::string other = name(i);
      const auto head = std::ranges::mismatch(first, other).in1 - first.begin();
      const auto tail = std::mismatch(first.rbegin(), first.rend(), other.rbegin(), other.rend()).first;
      begin = std::min(begin, static_cast<std::size_t>(head));
      end = std::min(end, static_cast<std::size_t>(tail - first.rbegin()));
    }
    const auto cuts = [&](std::size_t at) { return at < first.size() && is_boundary(first[at - 1], first[at]); };
    while (begin > 0 && !cuts(begin)) --begin;
    while (end > 0 && !(end < first.size() && cuts(first.size() - end))) --end;
    begin_ = begin;
    end_ = end;
  }

  static bool are_files(const JoinedPart& part) {
    return part.size > 1 && is_image_path(file(part, 0)) && is_image_path(file(part, part.size - 1));
  }

  std::string file(std::uint64_t position) const { return file(part_, position); }
  // Returns the name without what all of them share.
  std::string own(std::uint64_t position) const {
    std::string text = name(position);
    text.resize(text.size() - std::min(end_, text.size()));
    return text.erase(0, std::min(begin_, text.size()));
  }

 private:
  // Of a record that is itself joined: its first file.
  static std::string file(const JoinedPart& part, std::uint64_t position) {
    const std::string text = part.source->describe(part.record_at ? part.record_at(position) : position);
    return text.substr(0, text.find(" + "));
  }
  std::string name(std::uint64_t position) const {
    const std::string path = file(position);
    return path.substr(0, path.size() - file_name(path).size() + file_name(path).rfind('.'));
  }

  const JoinedPart& part_;
  std::size_t begin_ = 0, end_ = 0;  // bytes that all names share
};

}  // namespace

void require_paired_names(const std::vector<JoinedPart>& parts) {
  const auto first = std::ranges::find_if(parts, PartNames::are_files);
  if (first == parts.end()) return;
  const PartNames names(*first);
  for (auto other = first + 1; other != parts.end(); ++other) {
    if (!PartNames::are_files(*other)) continue;
    const PartNames theirs(*other);
    for (std::uint64_t i = 0; i < first->size; ++i) {
      if (names.own(i) == theirs.own(i)) continue;
      throw ConfigError(
          fmt::format("zip(): record {} would be {} of {} with {} of {}, whose names differ", i, names.file(i),
                      first->source->info().name, theirs.file(i), other->source->info().name),
          joined({advice("take the files along by their names: {}",
                         named("ColumnOptions::columns", "mask=../masks/{stem}_mask.png:mask")),
                  advice("pair by position, whatever the names: {}", named("ZipOptions::strict", "false"))}));
    }
  }
}

}  // namespace headrace
