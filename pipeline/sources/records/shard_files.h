// The files that a sharded dataset consists of, read by position.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

// "train-00002-of-00004.tfrecord": the parts of a name that says how many shards there are.
struct ShardName {
  std::string stem;  // "train"
  std::uint64_t index = 0;
  std::uint64_t count = 0;
  std::string ending;  // ".tfrecord"; all that stands after the numbers
};
// Nothing for a name without "-NNNNN-of-NNNNN".
std::optional<ShardName> parse_shard_name(std::string_view name);

// Whether a file is one of a folder's shards.
using IsShard = std::function<bool(const std::filesystem::path& path)>;
// The endings by which names are told: also before the numbers, as in x.tfrecord-00000-of-00004.
bool has_ending(const std::filesystem::path& path, std::span<const std::string> endings);

// The files of a folder that are shards, in bytewise order. Where names start with train, test or val, or hold one
// of these as a word (mnist-train.tfrecord-00000-of-00001), only those of the split (val stands for test where
// there is none of that); else all are train. DataError naming the files where shards are missing that their names
// count.
std::vector<std::filesystem::path> find_shards(const std::filesystem::path& folder, const IsShard& is_shard,
                                               Split split);

}  // namespace headrace
