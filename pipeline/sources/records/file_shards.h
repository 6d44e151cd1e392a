// Sharded sources whose shards are files.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources/fingerprint.h"
#include "headrace/pipeline/sources/records/shard_files.h"
#include "headrace/pipeline/sources/sharded_source.h"

namespace headrace {

// Derived constructors add the classes, fields and fingerprint to `info_`.
class FileShards : public ShardedSource {
 public:
  std::size_t shards() const noexcept final { return files_.size(); }
  bool is_remote() const noexcept final { return files_.is_remote(); }
  std::string shard_name(std::size_t shard) const final { return files_.path(shard).filename().string(); }
  std::uint64_t shard_bytes(std::size_t shard) const final { return files_.bytes(shard); }
  void will_read_parts(std::size_t shard, std::span<const ByteExtent> parts) const final {
    files_.will_read(shard, parts);
  }

 protected:
  FileShards(std::string name, FoundShards shards) : files_(std::move(shards.paths)) {
    check_shards(name, files_.size());
    info_.name = std::move(name);
    info_.reading = as_stream(shards.reading, files_.size());
    info_.left_out = std::move(shards.left_out);
    info_.revision = files_.revision();
  }

  // Returns a fingerprint of the shards' names and sizes alone: their bytes are not read before they are needed.
  Fingerprint fingerprint_of(const char* kind) const {
    Fingerprint fingerprint(kind);
    for (std::size_t file = 0; file < files_.size(); ++file)
      fingerprint.add(shard_name(file)).add(files_.bytes(file));
    return fingerprint;
  }
  // Calls read(). A fault of the shard itself ends the pass: nothing after it can be found.
  template <typename Read>
  static void in_shard(const std::string& name, const Read& read) {
    try {
      read();
    } catch (const DataError& error) {
      throw Error(error.code(), fmt::format("{}: {}", name, error.message()), error.hint());
    }
  }

  const ShardFiles files_;
};

}  // namespace headrace
