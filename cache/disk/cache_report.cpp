#include "headrace/cache/cache_report.h"

#include <array>
#include <optional>
#include <set>

#include "headrace/cache/disk/segment_reader.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/hash.h"

namespace headrace {
namespace {

constexpr std::size_t kMaxFindings = 20;

// Adds up one stream's segments.
class Inspection {
 public:
  Inspection(const std::filesystem::path& folder, Thoroughness thoroughness)
      : folder_(folder), thoroughness_(thoroughness) {
    report_.fingerprint = folder.filename().string();
  }

  CacheReport run() {
    for (const DirectoryEntry& entry : list_directory(folder_)) {
      report_.bytes += entry.size;
      if (entry.path.extension() == ".segment") add_segment(entry.path);
    }
    report_.records = records_.size();
    return std::move(report_);
  }

 private:
  void complain(const std::filesystem::path& file, const std::string& what) {
    ++report_.bad;
    if (report_.findings.size() < kMaxFindings) report_.findings.push_back(file.string() + ": " + what);
  }

  // What its header says, where that belongs to this folder.
  std::optional<SegmentStream> stream_of(const std::filesystem::path& path) {
    std::array<std::byte, kSegmentHeaderBytes> header;
    File::open(path).read_exact(0, header);
    const auto stream = decode_segment_header(header);
    return stream && to_hex(stream->fingerprint) == report_.fingerprint ? stream : std::nullopt;
  }

  void add_segment(const std::filesystem::path& path) {
    ++report_.segments;
    try {
      const auto stream = stream_of(path);
      if (!stream) return complain(path, "no segment of this stream and version");
      report_.source_records = stream->records;
      const SegmentReader reader(path, *stream);
      const SegmentReader::Contents contents = reader.contents();
      const bool has_index = path_kind(index_path(path)) == PathKind::kFile;
      if (has_index && contents.from == SegmentReader::Source::kScan) complain(index_path(path), "damaged index");
      for (const SegmentEntry& entry : contents.entries) add_entry(reader, entry);
      std::uint64_t covered = kSegmentHeaderBytes;
      for (const SegmentEntry& entry : contents.entries) covered += kEntryHeaderBytes + entry.stored_bytes;
      if (covered < reader.size() && !is_being_written(path)) {
        complain(path, std::to_string(reader.size() - covered) +
                           " bytes are no entries: damaged, or was its process killed?");
      }
    } catch (const DataError& error) {
      complain(path, error.what());
    }
  }

  void add_entry(const SegmentReader& reader, const SegmentEntry& entry) {
    if (thoroughness_ == Thoroughness::kEveryByte && !reader.holds(entry)) {
      return complain(reader.path(), "record " + std::to_string(entry.record) + " at offset " +
                                         std::to_string(entry.offset) + " is damaged");
    }
    records_.insert(entry.record);
  }

  std::filesystem::path folder_;
  Thoroughness thoroughness_;
  CacheReport report_;
  std::set<std::uint64_t> records_;
};

bool is_fingerprint(const std::string& name) {
  return name.size() == 16 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

std::vector<CacheReport> inspect_cache(const std::filesystem::path& folder, Thoroughness thoroughness) {
  std::vector<CacheReport> reports;
  for (const DirectoryEntry& entry : list_directory(folder)) {
    if (!entry.is_directory || !is_fingerprint(entry.path.filename().string())) continue;
    reports.push_back(Inspection(entry.path, thoroughness).run());
  }
  return reports;
}

}  // namespace headrace
