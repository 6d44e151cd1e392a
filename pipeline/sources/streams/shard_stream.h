// A pass over the shards of a source: several at a time, a record of each in turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/devices/base/permutation.h"
#include "headrace/pipeline/sources/sharded_source.h"

namespace headrace {

// Each shard has a seat among `at_a_time`, and seats take turns. A shard that has ended leaves its seat to the
// next one in the order, in the same turn; if there is none, the seat goes. So the sequence of records depends on
// the order and the shards alone, not on which of them is quick. One thread at a time.
class ShardStream {
 public:
  // Starts a pass.
  ShardStream(ShardedSourcePtr source, const ShardOrder& order, std::uint64_t pass);
  // Continues where mark() of the same pass was taken. Throws ConfigError if it was not.
  ShardStream(ShardedSourcePtr source, const ShardOrder& order, std::uint64_t pass, std::string_view mark);

  // As RecordStream::next().
  std::optional<RecordView> next(std::vector<std::byte>& buffer);
  // Returns the number (ShardedSource) of the record that next() gave last, or of the bad one that it threw for.
  std::uint64_t number() const noexcept { return number_; }
  // Returns where the pass stands, in some twenty bytes for each shard that is open: hexadecimal digits and "-:.".
  std::string mark() const;

 private:
  struct Seat {
    std::uint64_t position = 0;                // of its shard, in the order
    std::uint64_t given = 0;                   // records
    std::unique_ptr<ShardReader> reader = {};  // null: the shard has ended
  };

  std::size_t shard_at(std::uint64_t position) const;
  std::unique_ptr<ShardReader> open(const Seat& seat, std::uint64_t offset) const;
  void open_all(const std::vector<std::uint64_t>& offsets);
  void open_ahead();
  bool take_next_shard(Seat& seat);
  [[noreturn]] static void refuse(std::string_view mark);

  const ShardedSourcePtr source_;
  std::uint64_t at_a_time_;
  std::optional<Permutation> permutation_;  // of the shards; std::nullopt: as they are listed
  std::vector<Seat> seats_;
  std::size_t turn_ = 0;
  std::uint64_t next_position_ = 0;  // of the first shard that has no seat yet
  std::uint64_t number_ = 0;
  // Of that shard and those after it, if they lie behind a network.
  std::deque<std::future<std::unique_ptr<ShardReader>>> ahead_;
};

}  // namespace headrace
