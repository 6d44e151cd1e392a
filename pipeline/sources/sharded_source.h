// Streams whose records lie in shards: each shard is read from front to end, any number of times, in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/file.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/sources/streamed_source.h"

namespace headrace {

// The order in which shards are read.
struct ShardOrder {
  std::uint64_t at_a_time = 1;
  std::optional<std::uint64_t> key = {};  // of their permutation; std::nullopt: as the source lists them
  bool each_pass_anew = true;

  bool operator==(const ShardOrder&) const = default;
};

// One shard being read. One thread at a time.
class ShardReader {
 public:
  // An offset at which nothing is left.
  static constexpr std::uint64_t kEnd = ~std::uint64_t{0};

  ShardReader() = default;
  virtual ~ShardReader() = default;
  ShardReader(const ShardReader&) = delete;
  ShardReader& operator=(const ShardReader&) = delete;

  // As RecordStream::next().
  virtual std::optional<RecordView> next(std::vector<std::byte>& buffer) = 0;
  // Returns the offset from which open_shard() continues with the next record; 0: it can only be read from the
  // beginning.
  virtual std::uint64_t offset() const noexcept = 0;
  // Starts fetching what follows, which is read after so many bytes of other shards. Only a hint; does not block.
  virtual void read_ahead(std::uint64_t /*bytes_before*/) {}
};

// Numbers its records by shard and by their place within it, so that a record has the same number whatever the
// order, and none needs to know how many there are.
class ShardedSource : public StreamedSource {
 public:
  static constexpr int kPlaceBits = 28;
  static constexpr std::size_t kMaxShards = std::size_t{1} << 20;

  static std::uint64_t number_of(std::size_t shard, std::uint64_t place) noexcept {
    return std::uint64_t{shard} << kPlaceBits | place;
  }
  static std::size_t shard_of(std::uint64_t number) noexcept {
    return static_cast<std::size_t>(number >> kPlaceBits);
  }
  static std::uint64_t place_of(std::uint64_t number) noexcept {
    return number & ((std::uint64_t{1} << kPlaceBits) - 1);
  }

  virtual std::size_t shards() const noexcept = 0;
  // Returns whether they lie behind a network.
  virtual bool is_remote() const noexcept = 0;
  virtual std::string shard_name(std::size_t shard) const = 0;
  virtual std::uint64_t shard_bytes(std::size_t shard) const = 0;
  // Thread-safe. `offset`: of a ShardReader of this shard, or 0.
  virtual std::unique_ptr<ShardReader> open_shard(std::size_t shard, std::uint64_t offset) const = 0;
  // Opens a part of a shard, from an offset of a ShardReader, or 0, to another one, or the end: it is read as a
  // whole; its reader gives the records between them first. Thread-safe.
  virtual std::unique_ptr<ShardReader> open_part(std::size_t shard, const ByteExtent& part) const {
    return open_shard(shard, part.offset);
  }
  // Fetches parts ahead; empty: forgets those of the shard that were not read. Only a hint; does not block.
  virtual void will_read_parts(std::size_t /*shard*/, std::span<const ByteExtent> /*parts*/) const {}

  const ShardedSource* sharded() const noexcept final { return this; }
  // "train-0007.tar[12]".
  std::string describe(std::uint64_t number) const final {
    return shard_name(shard_of(number)) + "[" + std::to_string(place_of(number)) + "]";
  }

 protected:
  // Throws ConfigError if there are too many.
  static void check_shards(const std::string& name, std::size_t shards) {
    if (shards <= kMaxShards) return;
    throw ConfigError(
        name + " has " + count_of(shards, "shard") + "; " + with_commas(kMaxShards) + " can be read as a stream",
        "join some of them");
  }
  // Returns SourceInfo::reading of so many shards, of which that was said before.
  static std::string as_stream(const std::string& reading, std::size_t shards) {
    return reading + (reading.empty() ? "" : "; ") + count_of(shards, "shard") + ", not indexed";
  }
};

using ShardedSourcePtr = std::shared_ptr<const ShardedSource>;

}  // namespace headrace
