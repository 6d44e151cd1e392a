#include "headrace/cache/cache_report.h"
#include "headrace/devices/base/file_lock.h"

#include <array>
#include <optional>
#include <set>
#include <utility>

#include "headrace/cache/disk/segment_file.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/hash.h"

namespace headrace {
namespace {

constexpr std::size_t kMaxFindings = 20;
// Stored bytes that one task checks, so that the threads also share one large segment.
constexpr std::uint64_t kTaskBytes = std::uint64_t{4} << 20;

void run_here(std::size_t count, const std::function<void(std::size_t)>& task) {
  for (std::size_t i = 0; i < count; ++i) task(i);
}

// Entries of one segment that one task checks, up to the first that cannot be read at all.
struct Stretch {
  std::size_t first = 0, end = 0;
  std::vector<std::size_t> damaged = {};
  std::string failure = {};  // where it ended early; empty: nowhere
};

// One segment: open() and check() may run at the same time for different segments and stretches.
class SegmentCheck {
 public:
  explicit SegmentCheck(std::filesystem::path path) : path_(std::move(path)) {}

  // Reads the entries if it is a segment of the stream with this fingerprint.
  void open(const std::string& fingerprint) {
    try {
      stream_ = stream_of(fingerprint);
      if (!stream_) return;
      reader_.emplace(path_, *stream_);
      contents_ = reader_->contents();
      cut();
    } catch (const DataError& error) {
      failure_ = error.what();
    }
  }
  std::size_t stretches() const noexcept { return stretches_.size(); }
  void check(std::size_t index) {
    Stretch& stretch = stretches_[index];
    std::vector<std::byte> scratch;
    try {
      for (std::size_t i = stretch.first; i < stretch.end; ++i) {
        if (!reader_->holds(contents_.entries[i], scratch)) stretch.damaged.push_back(i);
      }
    } catch (const DataError& error) {
      stretch.failure = error.what();
    }
  }

  // Adds the findings to the report, in the order of the entries.
  void report(CacheReport& to, std::set<std::uint64_t>& records) const {
    ++to.segments;
    if (stream_) to.source_records = stream_->records;
    if (!failure_.empty()) return complain(to, path_, failure_);
    if (!stream_) return complain(to, path_, "no segment of this stream and version");
    if (contents_.from == SegmentReader::Source::kScan && path_kind(index_path(path_)) == PathKind::kFile) {
      complain(to, index_path(path_), "damaged index");
    }
    for (const Stretch& stretch : stretches_) {
      report_entries(stretch, to, records);
      if (!stretch.failure.empty()) return complain(to, path_, stretch.failure);
    }
    report_gaps(to);
  }

 private:
  static void complain(CacheReport& to, const std::filesystem::path& file, const std::string& what) {
    ++to.bad;
    if (to.findings.size() < kMaxFindings) to.findings.push_back(file.string() + ": " + what);
  }

  // Returns the header's stream if that belongs to this folder.
  std::optional<SegmentStream> stream_of(const std::string& fingerprint) const {
    std::array<std::byte, kSegmentHeaderBytes> header;
    File::open(path_).read_exact(0, header);
    const auto stream = decode_segment_header(header);
    return stream && to_hex(stream->fingerprint) == fingerprint ? stream : std::nullopt;
  }

  void cut() {
    std::uint64_t bytes = kTaskBytes;
    for (std::size_t i = 0; i < contents_.entries.size(); ++i) {
      if (bytes >= kTaskBytes) {
        stretches_.push_back({.first = i});
        bytes = 0;
      }
      stretches_.back().end = i + 1;
      bytes += contents_.entries[i].stored_bytes;
    }
  }

  void report_entries(const Stretch& stretch, CacheReport& to, std::set<std::uint64_t>& records) const {
    auto damaged = stretch.damaged.begin();
    for (std::size_t i = stretch.first; i < stretch.end; ++i) {
      const SegmentEntry& entry = contents_.entries[i];
      if (damaged == stretch.damaged.end() || *damaged != i) {
        records.insert(entry.record);
        continue;
      }
      ++damaged;
      complain(
          to, path_,
          "record " + std::to_string(entry.record) + " at offset " + std::to_string(entry.offset) + " is damaged");
    }
  }

  void report_gaps(CacheReport& to) const {
    std::uint64_t covered = kSegmentHeaderBytes;
    for (const SegmentEntry& entry : contents_.entries) covered += kEntryHeaderBytes + entry.stored_bytes;
    if (covered >= reader_->size() || is_being_written(path_)) return;
    complain(
        to, path_,
        std::to_string(reader_->size() - covered) + " bytes are no entries: damaged, or was its process killed?");
  }

  std::filesystem::path path_;
  std::optional<SegmentStream> stream_;  // std::nullopt: not a segment of this stream
  std::optional<SegmentReader> reader_;
  SegmentReader::Contents contents_;
  std::vector<Stretch> stretches_;
  std::string failure_;  // why its entries are unknown; empty: none
};

CacheReport inspect_stream(const std::filesystem::path& folder, Thoroughness thoroughness, const TaskRunner& run) {
  CacheReport report;
  report.fingerprint = folder.filename().string();
  std::vector<SegmentCheck> segments;
  for (const DirectoryEntry& entry : list_directory(folder)) {
    report.bytes += entry.size;
    if (entry.path.extension() == ".segment") segments.emplace_back(entry.path);
  }
  run(segments.size(), [&](std::size_t i) { segments[i].open(report.fingerprint); });
  if (thoroughness == Thoroughness::kEveryByte) {
    std::vector<std::pair<SegmentCheck*, std::size_t>> stretches;
    for (SegmentCheck& segment : segments) {
      for (std::size_t i = 0; i < segment.stretches(); ++i) stretches.emplace_back(&segment, i);
    }
    run(stretches.size(), [&](std::size_t i) { stretches[i].first->check(stretches[i].second); });
  }
  std::set<std::uint64_t> records;
  for (const SegmentCheck& segment : segments) segment.report(report, records);
  report.records = records.size();
  return report;
}

bool is_fingerprint(const std::string& name) {
  return name.size() == 16 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

std::vector<CacheReport> inspect_cache(const std::filesystem::path& folder, Thoroughness thoroughness,
                                       const TaskRunner& run) {
  std::vector<CacheReport> reports;
  for (const DirectoryEntry& entry : list_directory(folder)) {
    if (!entry.is_directory || !is_fingerprint(entry.path.filename().string())) continue;
    reports.push_back(inspect_stream(entry.path, thoroughness, run ? run : run_here));
  }
  return reports;
}

}  // namespace headrace
