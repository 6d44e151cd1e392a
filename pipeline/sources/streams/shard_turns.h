// Whose turn it is among the shards of a pass, and where in them its records lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/devices/base/file.h"
#include "headrace/devices/base/permutation.h"
#include "headrace/pipeline/sources/sharded_source.h"

namespace headrace {

// Each shard has a seat among `at_a_time`, and seats take turns. A shard that has ended leaves its seat to the
// next one in the order, in the same turn; if there is none, the seat goes. So the sequence of records depends on
// the order and the shards alone, not on which of them is quick.
class ShardTurns {
 public:
  struct Seat {
    std::uint64_t position = 0;  // of its shard, in the order
    std::uint64_t given = 0;     // records
    std::uint64_t offset = 0;  // from which the next record is read, as ShardReader::offset(); kEnd: none is left
  };

  ShardTurns(std::uint64_t shards, const ShardOrder& order, std::uint64_t pass);
  // Continues where mark() of the same pass was taken. Throws ConfigError if it was not.
  ShardTurns(std::uint64_t shards, const ShardOrder& order, std::uint64_t pass, std::string_view mark);

  // Returns whether all shards have ended. REQUIRES, as the next four: they have not.
  bool ended() const noexcept { return seats_.empty(); }
  std::size_t turn() const noexcept { return turn_; }
  const Seat& seat() const noexcept { return seats_[turn_]; }
  // Returns the number (ShardedSource) of the record whose turn it is.
  std::uint64_t number() const { return ShardedSource::number_of(shard_at(seat().position), seat().given); }
  // The record was given, and the next one of its shard lies at the offset.
  void give(std::uint64_t offset);
  // The shard had no record left: the next one takes the seat. Returns false if there is none.
  bool replace();

  const std::vector<Seat>& seats() const noexcept { return seats_; }
  std::size_t shard_at(std::uint64_t position) const {
    return static_cast<std::size_t>(permutation_ ? (*permutation_)(position) : position);
  }
  // Returns the position of the first shard that has no seat yet.
  std::uint64_t next_position() const noexcept { return next_position_; }
  // Returns where the pass stands, in some twenty bytes for each shard that is open: hexadecimal digits and "-:.".
  std::string mark() const;

 private:
  [[noreturn]] static void refuse(std::string_view mark);

  std::uint64_t shards_;
  std::optional<Permutation> permutation_;  // of the shards; std::nullopt: as they are listed
  std::vector<Seat> seats_;
  std::size_t turn_ = 0;  // below their number
  std::uint64_t next_position_ = 0;
};

// What a pass did from a mark on: for each record the bytes of its shard that it took, and 0 for each shard that
// had ended. kUnplaced: the record cannot be read by position.
using ShardSteps = std::vector<std::uint64_t>;
inline constexpr std::uint64_t kUnplaced = ~std::uint64_t{0};

// Returns the steps as text; empty if one is kUnplaced or the text were longer than `limit`.
std::string steps_to_text(const ShardSteps& steps, std::size_t limit);
// Returns the steps of such a text; std::nullopt if it is none.
std::optional<ShardSteps> parse_steps(std::string_view text);

// A record of a shard, and the bytes that hold it.
struct PlacedRecord {
  std::uint64_t number = 0;
  ByteExtent extent;
};
struct PlacedRecords {
  std::vector<PlacedRecord> records;
  std::string mark;  // after them
};
// Returns where the records lie that follow a mark, by the steps from there. Throws ConfigError if the source
// cannot have taken them.
PlacedRecords place(const ShardedSource& source, const ShardOrder& order, std::uint64_t pass,
                    std::string_view mark, const ShardSteps& steps);

}  // namespace headrace
