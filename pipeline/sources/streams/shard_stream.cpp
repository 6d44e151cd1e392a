#include "headrace/pipeline/sources/streams/shard_stream.h"

#include <algorithm>
#include <map>
#include <system_error>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources/side_by_side.h"

namespace headrace {
namespace {

// More bytes than the shards that have a seat hold: those that wait for one are fetched after them.
constexpr std::uint64_t kSeatsFirst = std::uint64_t{1} << 40;
// Records that are announced together: neighbours among them are one request.
constexpr std::size_t kTogether = 64;

}  // namespace

ShardStream::ShardStream(ShardedSourcePtr source, const ShardOrder& order, std::uint64_t pass)
    : source_(std::move(source)), at_a_time_(order.at_a_time), turns_(source_->shards(), order, pass) {
  open_all();
}

ShardStream::ShardStream(ShardedSourcePtr source, const ShardOrder& order, std::uint64_t pass,
                         std::string_view mark)
    : source_(std::move(source)), at_a_time_(order.at_a_time), turns_(source_->shards(), order, pass, mark) {
  open_all();
}

// Skips the records that were given before the offset, if that is the shard's beginning.
std::unique_ptr<ShardReader> ShardStream::open(const ShardTurns::Seat& seat) const {
  if (seat.offset == ShardReader::kEnd) return nullptr;
  std::unique_ptr<ShardReader> reader = source_->open_shard(turns_.shard_at(seat.position), seat.offset);
  reader->read_ahead(0);
  std::vector<std::byte> skipped;
  for (std::uint64_t i = seat.offset > 0 ? seat.given : 0; i < seat.given; ++i) {
    try {
      if (!reader->next(skipped)) break;
    } catch (const DataError&) {  // it was bad then, too
    }
  }
  return reader;
}

void ShardStream::open_all() {
  readers_.resize(turns_.seats().size());
  read_side_by_side(
      readers_.size(), source_->is_remote(), [&](std::size_t i) { readers_[i] = open(turns_.seats()[i]); },
      [](std::size_t) {});
  open_ahead();
}

// A distant shard takes some round trips to open, and shards of one size end together.
void ShardStream::open_ahead() {
  if (!source_->is_remote()) return;
  try {
    for (;;) {
      const std::uint64_t position = turns_.next_position() + ahead_.size();
      if (ahead_.size() >= at_a_time_ || position >= source_->shards()) return;
      ahead_.push_back(std::async(std::launch::async, [this, shard = turns_.shard_at(position)] {
        std::unique_ptr<ShardReader> reader = source_->open_shard(shard, 0);
        reader->read_ahead(kSeatsFirst);
        return reader;
      }));
    }
  } catch (const std::system_error&) {  // no thread: it is opened when its turn comes
  }
}

// Of the shard that took a seat.
std::unique_ptr<ShardReader> ShardStream::open_next() {
  std::unique_ptr<ShardReader> reader;
  if (ahead_.empty()) {
    reader = source_->open_shard(turns_.shard_at(turns_.seat().position), 0);
  } else {
    reader = ahead_.front().get();
    ahead_.pop_front();
  }
  open_ahead();
  return reader;
}

void ShardStream::pass_record(const ShardReader& reader) {
  const ShardTurns::Seat& seat = turns_.seat();
  const std::size_t shard = turns_.shard_at(seat.position);
  if ((seat.given + 1) >> ShardedSource::kPlaceBits != 0) {
    throw Error(ErrorCode::kUnsupported, source_->shard_name(shard) + " has too many records",
                "split it into smaller shards");
  }
  const std::uint64_t offset = reader.offset();
  const bool is_placed = offset > 0 && (seat.offset > 0 || seat.given == 0);
  const std::uint64_t end = offset == ShardReader::kEnd ? source_->shard_bytes(shard) : offset;
  steps_.push_back(is_placed ? end - seat.offset : kUnplaced);
  turns_.give(offset);
}

std::optional<RecordView> ShardStream::next(std::vector<std::byte>& buffer) {
  while (!turns_.ended()) {
    number_ = turns_.number();
    std::unique_ptr<ShardReader>& reader = readers_[turns_.turn()];
    std::optional<RecordView> record;
    try {
      if (reader != nullptr) record = reader->next(buffer);
    } catch (const DataError&) {
      pass_record(*reader);
      throw;
    }
    if (record) {
      pass_record(*reader);
      return record;
    }
    steps_.push_back(0);
    const std::size_t seat = turns_.turn();
    if (turns_.replace()) {
      readers_[seat] = open_next();
    } else {
      readers_.erase(readers_.begin() + static_cast<std::ptrdiff_t>(seat));
    }
  }
  return std::nullopt;
}

PlacedStream::PlacedStream(ShardedSourcePtr source, std::vector<PlacedRecord> records)
    : source_(std::move(source)), records_(std::move(records)) {
  if (!source_->is_remote()) return;
  for (std::size_t at = 0; at < records_.size(); at += kTogether) {
    announce(std::span(records_).subspan(at, std::min(kTogether, records_.size() - at)));
  }
}

PlacedStream::~PlacedStream() {
  for (; next_ < records_.size(); ++next_) {
    source_->will_read_parts(ShardedSource::shard_of(records_[next_].number), {});
  }
}

void PlacedStream::announce(std::span<const PlacedRecord> records) const {
  std::map<std::size_t, std::vector<ByteExtent>> by_shard;
  for (const PlacedRecord& record : records) {
    by_shard[ShardedSource::shard_of(record.number)].push_back(record.extent);
  }
  for (const auto& [shard, parts] : by_shard) source_->will_read_parts(shard, parts);
}

std::optional<RecordView> PlacedStream::next(std::vector<std::byte>& buffer) {
  if (next_ == records_.size()) return std::nullopt;
  const PlacedRecord& record = records_[next_++];
  const std::size_t shard = ShardedSource::shard_of(record.number);
  std::optional<RecordView> view = source_->open_part(shard, record.extent)->next(buffer);
  if (!view) {
    throw Error(
        ErrorCode::kDataCorrupt,
        source_->describe(record.number) + ": there is no record where the loader state says that one lies",
        "data must not change while they are read");
  }
  return view;
}

}  // namespace headrace
