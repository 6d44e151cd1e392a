// Where the stream of a run can go on: what a state keeps of it.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/pipeline/sources/streams/shard_turns.h"

namespace headrace {

// A record's epoch, and its place in the order in which they are pulled.
struct StreamPlace {
  std::uint64_t epoch = 0, record = 0;
  auto operator<=>(const StreamPlace&) const = default;
};

// The bytes of a mark's text: a state has 4 KiB at the most.
inline constexpr std::size_t kMaxMark = 3600;

// Where the record at a place is the next one; where records are shuffled, a window begins there.
struct StreamMark {
  StreamPlace at;
  std::string text = {};  // ShardStream::mark()
  ShardSteps steps = {};  // from there to the next mark; empty: not known

  // `with_steps`: also says where the window's records lie, if that fits into kMaxMark.
  std::string to_text(bool with_steps) const;
};

// Returns std::nullopt if the text is of no mark.
std::optional<StreamMark> parse_stream_mark(std::string_view text);

}  // namespace headrace
