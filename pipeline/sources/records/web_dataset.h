// Archives in WebDataset's naming: plain tars and zips are read by position, compressed tars lie unpacked in
// memory.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "headrace/devices/base/byte_slabs.h"
#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/archives/stored_file.h"
#include "headrace/pipeline/sources/records/shard_files.h"
#include "headrace/pipeline/sources/records/web_samples.h"
#include "headrace/pipeline/sources/sample_table.h"

namespace headrace {

// Returns whether it is a shard, by its name: x.tar, x.tar.gz, x.tar-00000-of-00004; by content for
// x-00000-of-00004. A .zip may be something else: it counts as a shard only if requested as one.
bool is_web_shard(const std::filesystem::path& path);

class WebDataset final : public Source {
 public:
  WebDataset(std::string name, std::vector<std::filesystem::path> archives, const WebDatasetOptions& options);

  const SourceInfo& info() const noexcept override { return info_; }
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override;
  void will_read(std::span<const std::uint64_t> records) const override;
  std::optional<std::int64_t> label(std::uint64_t index) const noexcept override;
  std::uint64_t offset(std::uint64_t index) const noexcept override { return images_[index].place.offset; }
  std::string describe(std::uint64_t index) const override;  // "shard-0.tar/0007.jpg"

 private:
  struct Image {
    StoredFile place;
    const std::byte* bytes;  // its position in memory; else null
  };

  [[noreturn]] void fail_without_samples() const;
  void add_archive(std::size_t file, std::uint64_t memory_limit);
  std::size_t file_of(std::uint64_t index) const noexcept;

  ShardFiles files_;
  ByteSlabs slabs_;
  std::uint64_t in_memory_ = 0;
  SampleTable table_;
  std::vector<Image> images_;
  std::map<std::uint64_t, std::string> faults_;  // of unusable samples, by record
  SourceInfo info_;
};

}  // namespace headrace
