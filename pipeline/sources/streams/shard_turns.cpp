#include "headrace/pipeline/sources/streams/shard_turns.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/rng.h"

namespace headrace {
namespace {

constexpr std::string_view kNoOffset = "-";  // in place of an offset
// Of the numbers from 0 to 63.
constexpr std::string_view kStepDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+_";
constexpr unsigned kDigitBits = 6;
constexpr std::uint64_t kMaxDigits = 8;

// Takes a hexadecimal number, and the character after it, off the front of `text`; std::nullopt if it is none.
std::optional<std::uint64_t> take(std::string_view& text, char end) {
  const std::size_t length = std::min(text.find(end), text.size());
  const std::string_view digits = text.substr(0, length);
  std::uint64_t value = 0;
  if (digits == kNoOffset) {
    value = ShardReader::kEnd;
  } else {
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + length, value, 16);
    if (error != std::errc() || stop != digits.data() + length || length == 0) return std::nullopt;
  }
  text.remove_prefix(std::min(length + 1, text.size()));
  return value;
}

}  // namespace

ShardTurns::ShardTurns(std::uint64_t shards, const ShardOrder& order, std::uint64_t pass) : shards_(shards) {
  if (order.key) permutation_ = Permutation(shards, mix_seed(*order.key, order.each_pass_anew ? pass : 0));
  seats_.resize(static_cast<std::size_t>(std::min(order.at_a_time, shards)));
  for (Seat& seat : seats_) seat.position = next_position_++;
}

// "<next position>:<turn>" and ":<position>.<offset>.<given>" for each seat.
ShardTurns::ShardTurns(std::uint64_t shards, const ShardOrder& order, std::uint64_t pass, std::string_view mark)
    : ShardTurns(shards, order, pass) {
  seats_.clear();
  std::string_view rest = mark;
  const std::optional<std::uint64_t> next = take(rest, ':'), turn = take(rest, ':');
  if (!next || !turn || *next > shards) refuse(mark);
  next_position_ = *next;
  while (!rest.empty()) {
    const std::optional<std::uint64_t> position = take(rest, '.'), offset = take(rest, '.');
    const std::optional<std::uint64_t> given = take(rest, ':');
    if (!position || !offset || !given || *position >= next_position_) refuse(mark);
    seats_.push_back({.position = *position, .given = *given, .offset = *offset});
  }
  if (seats_.size() > order.at_a_time || *turn > seats_.size()) refuse(mark);
  turn_ = *turn == seats_.size() ? 0 : static_cast<std::size_t>(*turn);
}

void ShardTurns::refuse(std::string_view mark) {
  throw ConfigError(fmt::format("'{}' is no position among these shards", mark),
                    "start again, or restore the state as it was saved");
}

std::string ShardTurns::mark() const {
  std::string text = fmt::format("{:x}:{:x}", next_position_, turn_);
  for (const Seat& seat : seats_) {
    const bool ended = seat.offset == ShardReader::kEnd;
    const std::string offset = ended ? std::string(kNoOffset) : fmt::format("{:x}", seat.offset);
    text += fmt::format(":{:x}.{}.{:x}", seat.position, offset, seat.given);
  }
  return text;
}

void ShardTurns::give(std::uint64_t offset) {
  ++seats_[turn_].given;
  seats_[turn_].offset = offset;
  turn_ = (turn_ + 1) % seats_.size();
}

bool ShardTurns::replace() {
  if (next_position_ < shards_) {
    seats_[turn_] = {.position = next_position_++};
    return true;
  }
  seats_.erase(seats_.begin() + static_cast<std::ptrdiff_t>(turn_));
  if (turn_ == seats_.size()) turn_ = 0;
  return false;
}

// "<unit>:<digits of each>:<number in units of each>": a record of a tar takes whole blocks.
std::string steps_to_text(const ShardSteps& steps, std::size_t limit) {
  std::uint64_t unit = 0, largest = 0;
  for (const std::uint64_t step : steps) {
    if (step == kUnplaced) return {};
    unit = std::gcd(unit, step);
    largest = std::max(largest, step);
  }
  if (unit == 0) return {};
  std::size_t digits = 1;
  while (digits <= kMaxDigits && largest / unit >> (kDigitBits * digits) != 0) ++digits;
  if (digits > kMaxDigits) return {};
  std::string text = fmt::format("{:x}:{:x}:", unit, digits);
  if (text.size() + digits * steps.size() > limit) return {};
  for (const std::uint64_t step : steps) {
    for (std::size_t digit = digits; digit-- > 0;) text += kStepDigits[step / unit >> (kDigitBits * digit) & 63];
  }
  return text;
}

std::optional<ShardSteps> parse_steps(std::string_view text) {
  const std::optional<std::uint64_t> unit = take(text, ':'), digits = take(text, ':');
  if (!unit || !digits || *unit == 0 || *digits == 0 || *digits > kMaxDigits || text.empty() ||
      text.size() % *digits != 0)
    return std::nullopt;
  ShardSteps steps;
  for (std::uint64_t step = 0; !text.empty(); text.remove_prefix(1)) {
    const std::size_t digit = kStepDigits.find(text.front());
    if (digit == std::string_view::npos) return std::nullopt;
    step = step << kDigitBits | digit;
    if ((text.size() - 1) % *digits != 0) continue;
    if (step > kUnplaced / *unit) return std::nullopt;
    steps.push_back(step * *unit);
    step = 0;
  }
  return steps;
}

PlacedRecords place(const ShardedSource& source, const ShardOrder& order, std::uint64_t pass,
                    std::string_view mark, const ShardSteps& steps) {
  ShardTurns turns(source.shards(), order, pass, mark);
  PlacedRecords placed;
  for (const std::uint64_t step : steps) {
    const std::uint64_t begin = turns.ended() ? ShardReader::kEnd : turns.seat().offset;
    const std::uint64_t bytes = turns.ended() ? 0 : source.shard_bytes(turns.shard_at(turns.seat().position));
    const bool fits = step == 0 ? !turns.ended() : begin < bytes && step <= bytes - begin;
    if (!fits) {
      throw ConfigError("the loader state names records that these shards do not have",
                        "start again, or restore the state as it was saved");
    }
    if (step == 0) {
      turns.replace();
      continue;
    }
    placed.records.push_back({.number = turns.number(), .extent = {.offset = begin, .size = step}});
    turns.give(begin + step == bytes ? ShardReader::kEnd : begin + step);
  }
  placed.mark = turns.mark();
  return placed;
}

}  // namespace headrace
