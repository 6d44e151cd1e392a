// The records of sharded sources: of several shards at a time, in turn, or those that lie at given places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/pipeline/sources/sharded_source.h"
#include "headrace/pipeline/sources/streams/shard_turns.h"

namespace headrace {

class NumberedStream : public RecordStream {
 public:
  // Returns the number (ShardedSource) of the record that next() gave last, or of the bad one that it threw for.
  virtual std::uint64_t number() const noexcept = 0;
};

// Reads in the order of ShardTurns. One thread at a time.
class ShardStream final : public NumberedStream {
 public:
  // Starts a pass.
  ShardStream(ShardedSourcePtr source, const ShardOrder& order, std::uint64_t pass);
  // Continues where mark() of the same pass was taken. Throws ConfigError if it was not.
  ShardStream(ShardedSourcePtr source, const ShardOrder& order, std::uint64_t pass, std::string_view mark);

  std::optional<RecordView> next(std::vector<std::byte>& buffer) override;
  std::uint64_t number() const noexcept override { return number_; }
  // As ShardTurns::mark().
  std::string mark() const { return turns_.mark(); }
  // Returns what was done since the last call.
  ShardSteps take_steps() { return std::exchange(steps_, {}); }

 private:
  void open_all();
  void open_ahead();
  std::unique_ptr<ShardReader> open(const ShardTurns::Seat& seat) const;
  std::unique_ptr<ShardReader> open_next();
  void pass_record(const ShardReader& reader);

  const ShardedSourcePtr source_;
  const std::uint64_t at_a_time_;
  ShardTurns turns_;
  std::vector<std::unique_ptr<ShardReader>> readers_;  // of the seats; null: the shard has ended
  std::uint64_t number_ = 0;
  ShardSteps steps_;
  // Of the shards that have no seat yet, if they lie behind a network.
  std::deque<std::future<std::unique_ptr<ShardReader>>> ahead_;
};

// Reads records where they lie, in any order. One thread at a time.
class PlacedStream final : public NumberedStream {
 public:
  // Fetches them ahead in the order of `records`.
  PlacedStream(ShardedSourcePtr source, std::vector<PlacedRecord> records);
  ~PlacedStream() override;

  std::optional<RecordView> next(std::vector<std::byte>& buffer) override;
  std::uint64_t number() const noexcept override { return records_[next_ - 1].number; }

 private:
  void announce(std::span<const PlacedRecord> records) const;

  const ShardedSourcePtr source_;
  const std::vector<PlacedRecord> records_;
  std::size_t next_ = 0;
};

}  // namespace headrace
