#include "headrace/pipeline/plan/order_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>

#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/remote.h"
#include "headrace/devices/base/text.h"

namespace headrace {
namespace {

constexpr double kPage = 4096;  // bytes that a disk is asked for at least
constexpr std::uint64_t kLabels = 4096;

// Returns the mean size of the records of the first file; std::nullopt if they have no places in one.
std::optional<double> record_bytes(const Source& source) {
  const SourceInfo& info = source.info();
  const std::uint64_t count = info.file_ends.empty() ? info.records : info.file_ends.front();
  if (count < 2) return std::nullopt;
  const std::uint64_t first = source.offset(0), last = source.offset(count - 1);
  if (first == DataLocation::kUnknown || last == DataLocation::kUnknown || last <= first) return std::nullopt;
  return static_cast<double>(last - first) / static_cast<double>(count - 1);
}

std::string note_on_bytes(const Source& source, const std::vector<StagePtr>& stages) {
  const SourceInfo& info = source.info();
  const auto scatters = [](const StagePtr& stage) { return stage->traits().scatters; };
  if (info.resident || info.streamed || is_url(info.name)) return {};
  if (std::ranges::none_of(stages, scatters)) return {};
  const std::optional<double> bytes = record_bytes(source);
  if (!bytes || *bytes >= 2 * kPage) return {};
  return fmt::format(
      "  while the data are not in memory, reads about {:.1f} times the bytes it uses: records of {:.0f} bytes, "
      "and a "
      "disk gives pages of {:.0f}{}\n",
      (*bytes + kPage) / *bytes, *bytes, kPage,
      advice("; {} reads neighbours together", named("Dataset::shuffle_blocks()")));
}

// Returns how many classes every `stride`-th record from `first` on has; 0 if the labels are not known.
std::size_t classes_of(const Source& source, std::uint64_t first, std::uint64_t end, std::uint64_t stride) {
  std::set<std::int64_t> classes;
  for (std::uint64_t i = first; i < end; i += stride) {
    if (const std::optional<std::int64_t> label = source.label(i)) classes.insert(*label);
  }
  return classes.size();
}

std::string note_on_classes(const Source& source, const std::vector<StagePtr>& stages) {
  const std::uint64_t records = source.info().records;
  std::uint64_t window = 0;
  for (const StagePtr& stage : stages) {
    const StageTraits traits = stage->traits();
    if (traits.shuffles && traits.window == 0) return {};
    window = std::max(window, traits.window);
  }
  if (window == 0 || source.info().streamed || window * 2 > records) return {};
  const std::uint64_t first = (records - window) / 2;
  const std::size_t all = classes_of(source, 0, records, std::max<std::uint64_t>(1, records / kLabels));
  const std::size_t within =
      classes_of(source, first, first + window, std::max<std::uint64_t>(1, window / kLabels));
  if (within == 0 || within * 2 > all) return {};
  return fmt::format("  the data are sorted by class: {} in a row have {} of at least {} classes{}\n",
                     count_of(window, "record"), with_commas(within), with_commas(all),
                     advice("; {} mixes them", named("Dataset::shuffle_blocks()")));
}

}  // namespace

std::string notes_on_order(const Source& source, const std::vector<StagePtr>& index_stages, bool cached) {
  return (cached ? "" : note_on_bytes(source, index_stages)) + note_on_classes(source, index_stages);
}

}  // namespace headrace
