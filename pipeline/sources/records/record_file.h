// One split of a record file: the index in memory, records read by position. pipeline/FORMAT.md describes it.
#pragma once

#include <filesystem>

#include "headrace/devices/base/file.h"
#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/records/record_file_index.h"

namespace headrace {

class RecordFile final : public Source {
 public:
  // DataError where it is damaged; ConfigError where it has no such split.
  RecordFile(const std::filesystem::path& path, Split split);

  const SourceInfo& info() const noexcept override { return info_; }
  // Compares the record with its checksum: kDataCorrupt with record and offset where they differ.
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override;
  std::uint64_t offset(std::uint64_t index) const noexcept override { return index_[first_ + index].offset; }
  std::string describe(std::uint64_t index) const override;

 private:
  File file_;
  RecordFileIndex index_;    // of all splits
  std::uint64_t first_ = 0;  // record of this split
  SourceInfo info_;
};

// Whether the file starts as a record file does.
bool is_record_file(const std::filesystem::path& path);

}  // namespace headrace
