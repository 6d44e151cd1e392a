// Examples in TFRecord files: found by one walk over the record lengths, read by position.
#pragma once

#include <filesystem>
#include <vector>

#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/shard_files.h"

namespace headrace {

// Whether the file starts with the length of a record and that length's checksum.
bool is_tf_record(const std::filesystem::path& path);

class TfRecords final : public Source {
 public:
  TfRecords(std::string name, std::vector<std::filesystem::path> files, TfRecordOptions options);

  const SourceInfo& info() const noexcept override { return info_; }
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override;
  std::uint64_t offset(std::uint64_t index) const noexcept override { return extents_[index].offset; }
  std::string describe(std::uint64_t index) const override;  // "train-00000.tfrecord[17]"

 private:
  struct Extent {
    std::uint64_t offset;  // of the payload
    std::uint64_t size;
  };

  void index_file(std::size_t file);
  std::size_t file_of(std::uint64_t index) const noexcept;

  ShardFiles files_;
  TfRecordOptions options_;
  std::vector<Extent> extents_;
  SourceInfo info_;
};

}  // namespace headrace
