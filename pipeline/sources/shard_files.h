// The files that a sharded dataset consists of, read by position.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/file.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/fingerprint.h"

namespace headrace {

// Thread-safe. Some hundred files stay open; of more, each is opened when it is read.
class ShardFiles {
 public:
  // Opens each, if only to see that it can be.
  explicit ShardFiles(std::vector<std::filesystem::path> paths);

  std::size_t size() const noexcept { return paths_.size(); }
  const std::filesystem::path& path(std::size_t file) const noexcept { return paths_[file]; }
  std::uint64_t bytes(std::size_t file) const noexcept { return bytes_[file]; }
  // Of their times of change: SourceInfo::revision.
  std::uint64_t revision() const noexcept { return revision_.value(); }
  // Throws DataError naming the file.
  void read_exact(std::size_t file, std::uint64_t offset, std::span<std::byte> into) const;

 private:
  std::vector<std::filesystem::path> paths_;
  std::vector<std::uint64_t> bytes_;
  Fingerprint revision_{""};
  std::vector<std::optional<File>> open_;
};

// The files of a folder whose name ends in one of `endings`, in bytewise order. Where names start with train, test
// or val, only those of the split (val stands for test where there is none of that); else all are train.
std::vector<std::filesystem::path> find_shards(const std::filesystem::path& folder,
                                               std::span<const std::string> endings, Split split);

}  // namespace headrace
