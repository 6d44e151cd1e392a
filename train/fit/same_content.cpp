#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/hash.h"
#include "headrace/devices/base/permutation.h"
#include "headrace/train/fit/worker_agreement.h"

namespace headrace {
namespace {

constexpr std::uint64_t kRound = 256;  // records between two meetings of the workers
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;
constexpr double kMaxSeconds = 10;

// Reads records of one source and hashes all their fields.
class ContentReader {
 public:
  explicit ContentReader(const Source& source) : source_(source) {}

  // An unreadable record counts as its error.
  std::uint64_t hash(std::uint64_t record) {
    try {
      const RecordView view = source_.read(record, scratch_);
      std::uint64_t hash = 0;
      for (const std::span<const std::byte> field : view.fields) {
        hash = xxh3(field, hash + field.size());
        bytes_ += field.size();
      }
      return hash;
    } catch (const DataError& error) {
      return static_cast<std::uint64_t>(error.code());
    }
  }
  bool has_read_enough() const { return bytes_ >= kMaxBytes || time_.seconds() >= kMaxSeconds; }

 private:
  const Source& source_;
  const Stopwatch time_;
  std::vector<std::byte> scratch_;
  std::uint64_t bytes_ = 0;
};

std::uint64_t number_at(const std::string& values, std::size_t i) {
  std::uint64_t value = 0;
  std::memcpy(&value, values.data() + i * sizeof value, sizeof value);
  return value;
}

// Throws WorkersDiffer unless number `i` of all workers' values is the same.
void require_equal_number(const std::string& what, const std::vector<std::string>& values, std::size_t i) {
  std::vector<std::string> said;
  for (const std::string& value : values) said.push_back(to_hex(number_at(value, i)));
  require_equal_values(what, said);
}

}  // namespace

void require_same_content(Workers& workers, const SourcePtr& source, std::uint64_t seed,
                          ComparedSources& compared) {
  const SourceInfo& info = source->info();
  if (info.streamed || !info.revision) return;
  const std::uint8_t known = std::ranges::any_of(compared, [&](const auto& one) { return one.lock() == source; });
  const auto who_knows = gather_values<std::uint8_t>(workers, {&known, 1});
  if (std::ranges::all_of(who_knows, [](const auto& one) { return one.front() != 0; })) return;
  const Permutation order(info.records, seed);
  ContentReader reader(*source);
  bool enough = false;
  for (std::uint64_t first = 0; first < info.records && !enough; first += kRound) {
    std::vector<std::uint64_t> records;
    for (std::uint64_t i = first; i < std::min(first + kRound, info.records); ++i) records.push_back(order(i));
    source->will_read(records);
    std::vector<std::uint64_t> mine;
    for (const std::uint64_t record : records) mine.push_back(reader.hash(record));
    mine.push_back(reader.has_read_enough() ? 1 : 0);
    const std::vector<std::string> all =
        workers.all_gather({reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof mine.front()});
    for (std::size_t i = 0; i < records.size(); ++i) {
      require_equal_number(fmt::format("data: the content of record {}, {} of {}", records[i],
                                       source->describe(records[i]), info.name),
                           all, i);
    }
    enough = std::ranges::any_of(all, [&](const auto& one) { return number_at(one, records.size()) != 0; });
  }
  std::erase_if(compared, [](const auto& one) { return one.expired(); });
  if (known == 0) compared.push_back(source);
}

}  // namespace headrace
