// The files of a sharded dataset, read by position.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/devices/base/file.h"
#include "headrace/devices/base/memory.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/fingerprint.h"

namespace headrace {

// Thread-safe. A few hundred files stay open, and all that are remote; any others are opened for each read.
class ShardFiles {
 public:
  // Opens each, at least to check that it can be opened.
  explicit ShardFiles(std::vector<std::filesystem::path> paths);

  std::size_t size() const noexcept { return paths_.size(); }
  const std::filesystem::path& path(std::size_t file) const noexcept { return paths_[file]; }
  std::uint64_t bytes(std::size_t file) const noexcept { return bytes_[file]; }
  // Returns the fingerprint of their modification times: SourceInfo::revision.
  std::uint64_t revision() const noexcept { return revision_.value(); }
  bool is_remote() const noexcept { return !open_.empty() && open_.front() && open_.front()->is_remote(); }
  // Fetches these bytes of a file ahead if it is remote; empty: forgets what was fetched ahead of it and not read.
  void will_read(std::size_t file, std::span<const ByteExtent> extents) const {
    if (open_[file]) open_[file]->will_read(extents);
  }
  // Forgets what was fetched ahead of all files and not read.
  void forget() const {
    for (std::size_t file = 0; file < open_.size(); ++file) will_read(file, {});
  }
  // These throw DataError naming the file.
  std::vector<std::byte> read(std::size_t file, const ByteExtent& extent) const {
    std::vector<std::byte> bytes(static_cast<std::size_t>(extent.size));
    read_exact(file, extent.offset, bytes);
    return bytes;
  }
  void read_exact(std::size_t file, std::uint64_t offset, std::span<std::byte> into) const;

 private:
  std::vector<std::filesystem::path> paths_;
  std::vector<std::uint64_t> bytes_;
  Fingerprint revision_{""};
  std::vector<std::optional<File>> open_;
};

// Marks a folder whose shards are still being written (convert.h, shard_writer.h).
inline constexpr const char* kConversionMarker = ".headrace-convert";
// Throws DataError if an entry of a folder is the marker: what it holds may not be all.
void refuse_unfinished(const DirectoryEntry& entry);

// Returns the slabs for what a packed shard of so many bytes holds: there may be very many small ones.
ByteSlabs slabs_for(std::uint64_t packed_bytes);

// The parts of a name that counts shards, such as "train-00002-of-00004.tfrecord".
struct ShardName {
  std::string stem;  // "train"
  std::uint64_t index = 0;
  std::uint64_t count = 0;
  std::string ending;  // ".tfrecord"; everything after the numbers
};
// Returns std::nullopt for a name without "-NNNNN-of-NNNNN".
std::optional<ShardName> parse_shard_name(std::string_view name);

// Throws DataError naming the shards that the names count and that are missing, or are there twice.
void check_complete(const std::filesystem::path& folder, const std::vector<std::filesystem::path>& files);

// Returns whether a file is one of a folder's shards.
using IsShard = std::function<bool(const std::filesystem::path& path)>;
// Returns whether the name has one of the endings, also before the numbers, as in x.tfrecord-00000-of-00004.
bool has_ending(const std::filesystem::path& path, std::span<const std::string> endings);

struct FoundShards {
  std::vector<std::filesystem::path> paths;
  std::string reading = {};            // as SourceInfo::reading
  std::vector<LeftOut> left_out = {};  // shards of neither split
};
// Returns whether the folder holds shards and no images, as find_shards() looks for them.
bool has_shards(const std::filesystem::path& folder, const IsShard& is_shard);
// Returns the shards of the split in a folder, in bytewise order; if it has none itself, those in its folders, as
// train/0.tar, or in the only folder of it. A word in the name of each says its split (split_names.h), val
// standing for test if there is no test; names without such words are all train. `layout` says it instead:
// train_folder and test_folder are the shards' folder or the beginning of their names, before the number; "*":
// all. Throws ConfigError if only some names say a split, DataError naming the files if shards that the names
// count are missing.
FoundShards find_shards(const std::filesystem::path& folder, const IsShard& is_shard, Split split,
                        const LayoutOptions& layout);

}  // namespace headrace
