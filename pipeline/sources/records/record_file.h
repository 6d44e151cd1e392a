// One split of a record file, or of a folder of them: the indexes in memory, records read by position.
// pipeline/FORMAT.md describes the files.
#pragma once

#include <filesystem>
#include <utility>
#include <vector>

#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/records/record_file_format.h"
#include "headrace/pipeline/sources/records/shard_files.h"

namespace headrace {

// The records of several files are numbered as if they stood in one, and have its fingerprint.
class RecordFiles final : public Source {
 public:
  // `name`: the file or folder. Throws DataError if a file is damaged; ConfigError if none has such a split, or if
  // fields or classes differ.
  RecordFiles(const std::filesystem::path& name, std::vector<std::filesystem::path> files, Split split);

  const SourceInfo& info() const noexcept override { return info_; }
  // Returns a record. Throws kDataCorrupt with record and offset if it differs from its checksum.
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override;
  // Of files on a disk: it is fetched from no server.
  std::span<const std::byte> jpeg_index(std::uint64_t index, std::vector<std::byte>& scratch) const override;
  void will_read(std::span<const std::uint64_t> records) const override;
  std::uint64_t offset(std::uint64_t index) const noexcept override;
  std::string describe(std::uint64_t index) const override;

  // Sets SourceInfo::reading.
  void note_reading(std::string reading) { info_.reading = std::move(reading); }
  // Reports files of the folder that are not read.
  void leave_out(LeftOut what) { info_.left_out.push_back(std::move(what)); }

 private:
  // A file with its records of the split.
  struct Part {
    std::size_t file = 0;     // of files_
    RecordFileIndex index;    // of all splits
    std::uint64_t first = 0;  // in the index, of this split
    std::uint64_t begin = 0;  // the number of that record
    std::uint64_t records = 0;
    bool has_split = false;
  };
  // A record's place.
  struct At {
    const Part& part;
    std::uint64_t entry;  // of the index
  };

  std::uint64_t fingerprint() const;
  At find(std::uint64_t index) const noexcept;
  std::string name_of(const At& at) const;

  ShardFiles files_;
  std::vector<Part> parts_;
  SourceInfo info_;
};

// Returns whether the file starts like a record file.
bool is_record_file(const std::filesystem::path& path);
// Returns whether it is called like one of several: NAME.records.
bool is_record_shard(const std::filesystem::path& path);

}  // namespace headrace
