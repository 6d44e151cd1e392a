// One split of a record file: the index in memory, records read by position. pipeline/FORMAT.md describes it.
#pragma once

#include <filesystem>

#include "headrace/devices/base/file.h"
#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/records/record_file_format.h"

namespace headrace {

class RecordFile final : public Source {
 public:
  // Throws DataError if it is damaged; ConfigError if it has no such split.
  RecordFile(const std::filesystem::path& path, Split split);

  const SourceInfo& info() const noexcept override { return info_; }
  // Returns a record. Throws kDataCorrupt with record and offset if it differs from its checksum.
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override;
  void will_read(std::span<const std::uint64_t> records) const override;
  std::uint64_t offset(std::uint64_t index) const noexcept override { return index_[first_ + index].offset; }
  std::string describe(std::uint64_t index) const override;

 private:
  File file_;
  RecordFileIndex index_{0};  // of all splits
  std::uint64_t first_ = 0;   // first record of this split
  SourceInfo info_;
};

// Returns whether the file starts like a record file.
bool is_record_file(const std::filesystem::path& path);

}  // namespace headrace
