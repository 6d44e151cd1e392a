#include "headrace/pipeline/sources/streams/shard_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/rng.h"
#include "headrace/pipeline/sources/side_by_side.h"

namespace headrace {
namespace {

constexpr std::string_view kEnded = "-";  // in place of an offset
// More bytes than the shards that have a seat hold: those that wait for one are fetched after them.
constexpr std::uint64_t kSeatsFirst = std::uint64_t{1} << 40;

// Takes a hexadecimal number, and the character after it, off the front of `text`; std::nullopt if it is none.
std::optional<std::uint64_t> take(std::string_view& text, char end) {
  const std::size_t length = std::min(text.find(end), text.size());
  const std::string_view digits = text.substr(0, length);
  std::uint64_t value = 0;
  if (digits == kEnded) {
    value = ShardReader::kEnd;
  } else {
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + length, value, 16);
    if (error != std::errc() || stop != digits.data() + length || length == 0) return std::nullopt;
  }
  text.remove_prefix(std::min(length + 1, text.size()));
  return value;
}

}  // namespace

ShardStream::ShardStream(ShardedSourcePtr source, const ShardOrder& order, std::uint64_t pass)
    : source_(std::move(source)), at_a_time_(order.at_a_time) {
  if (order.key)
    permutation_ = Permutation(source_->shards(), mix_seed(*order.key, order.each_pass_anew ? pass : 0));
  seats_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(order.at_a_time, source_->shards())));
  for (Seat& seat : seats_) seat.position = next_position_++;
  open_all(std::vector<std::uint64_t>(seats_.size()));
}

// "<next position>:<turn>" and ":<position>.<offset>.<given>" for each seat.
ShardStream::ShardStream(ShardedSourcePtr source, const ShardOrder& order, std::uint64_t pass,
                         std::string_view mark)
    : source_(std::move(source)), at_a_time_(order.at_a_time) {
  if (order.key)
    permutation_ = Permutation(source_->shards(), mix_seed(*order.key, order.each_pass_anew ? pass : 0));
  std::string_view rest = mark;
  const std::optional<std::uint64_t> next = take(rest, ':'), turn = take(rest, ':');
  if (!next || !turn || *next > source_->shards()) refuse(mark);
  next_position_ = *next;
  std::vector<std::uint64_t> offsets;
  while (!rest.empty()) {
    const std::optional<std::uint64_t> position = take(rest, '.'), offset = take(rest, '.');
    const std::optional<std::uint64_t> given = take(rest, ':');
    if (!position || !offset || !given || *position >= next_position_) refuse(mark);
    seats_.push_back({.position = *position, .given = *given});
    offsets.push_back(*offset);
  }
  if (seats_.size() > order.at_a_time || *turn > seats_.size()) refuse(mark);
  turn_ = static_cast<std::size_t>(*turn);
  open_all(offsets);
}

void ShardStream::refuse(std::string_view mark) {
  throw ConfigError(fmt::format("'{}' is no position among these shards", mark),
                    "start again, or restore the state as it was saved");
}

std::string ShardStream::mark() const {
  std::string text = fmt::format("{:x}:{:x}", next_position_, turn_);
  for (const Seat& seat : seats_) {
    const std::uint64_t offset = seat.reader == nullptr ? ShardReader::kEnd : seat.reader->offset();
    const std::string place = offset == ShardReader::kEnd ? std::string(kEnded) : fmt::format("{:x}", offset);
    text += fmt::format(":{:x}.{}.{:x}", seat.position, place, seat.given);
  }
  return text;
}

std::size_t ShardStream::shard_at(std::uint64_t position) const {
  return static_cast<std::size_t>(permutation_ ? (*permutation_)(position) : position);
}

// Skips the records that were given before the offset, if that is the shard's beginning.
std::unique_ptr<ShardReader> ShardStream::open(const Seat& seat, std::uint64_t offset) const {
  if (offset == ShardReader::kEnd) return nullptr;
  std::unique_ptr<ShardReader> reader = source_->open_shard(shard_at(seat.position), offset);
  reader->read_ahead(0);
  std::vector<std::byte> skipped;
  for (std::uint64_t i = offset > 0 ? seat.given : 0; i < seat.given; ++i) {
    try {
      if (!reader->next(skipped)) break;
    } catch (const DataError&) {  // it was bad then, too
    }
  }
  return reader;
}

void ShardStream::open_all(const std::vector<std::uint64_t>& offsets) {
  read_side_by_side(
      seats_.size(), source_->is_remote(), [&](std::size_t i) { seats_[i].reader = open(seats_[i], offsets[i]); },
      [](std::size_t) {});
  open_ahead();
}

// A distant shard takes some round trips to open, and shards of one size end together.
void ShardStream::open_ahead() {
  if (!source_->is_remote()) return;
  try {
    while (ahead_.size() < at_a_time_ && next_position_ + ahead_.size() < source_->shards()) {
      ahead_.push_back(std::async(std::launch::async, [this, shard = shard_at(next_position_ + ahead_.size())] {
        std::unique_ptr<ShardReader> reader = source_->open_shard(shard, 0);
        reader->read_ahead(kSeatsFirst);
        return reader;
      }));
    }
  } catch (const std::system_error&) {  // no thread: it is opened when its turn comes
  }
}

// Returns false if no shard is left.
bool ShardStream::take_next_shard(Seat& seat) {
  if (next_position_ >= source_->shards()) return false;
  seat.position = next_position_++;
  seat.given = 0;
  if (ahead_.empty()) {
    seat.reader = source_->open_shard(shard_at(seat.position), 0);
  } else {
    seat.reader = ahead_.front().get();
    ahead_.pop_front();
  }
  open_ahead();
  return true;
}

std::optional<RecordView> ShardStream::next(std::vector<std::byte>& buffer) {
  while (!seats_.empty()) {
    turn_ %= seats_.size();
    Seat& seat = seats_[turn_];
    number_ = ShardedSource::number_of(shard_at(seat.position), seat.given);
    std::optional<RecordView> record;
    try {
      if (seat.reader != nullptr) record = seat.reader->next(buffer);
    } catch (const DataError&) {
      ++seat.given;
      ++turn_;
      throw;
    }
    if (record) {
      if (++seat.given >> ShardedSource::kPlaceBits != 0) {
        throw Error(ErrorCode::kUnsupported,
                    source_->shard_name(shard_at(seat.position)) + " has too many records",
                    "split it into smaller shards");
      }
      ++turn_;
      return record;
    }
    if (!take_next_shard(seat)) seats_.erase(seats_.begin() + static_cast<std::ptrdiff_t>(turn_));
  }
  return std::nullopt;
}

}  // namespace headrace
