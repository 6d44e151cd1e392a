#include "headrace/pipeline/engine/slot_state.h"

#include <fmt/format.h>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

constexpr int kStateBits = 3;

}  // namespace

const char* to_string(SlotState state) noexcept {
  switch (state) {
    case SlotState::kFree: return "Free";
    case SlotState::kWriting: return "Writing";
    case SlotState::kMixing: return "Mixing";
    case SlotState::kWritten: return "Written";
    case SlotState::kCopying: return "Copying";
    case SlotState::kReady: return "Ready";
    case SlotState::kHeld: return "Held";
  }
  return "?";
}

bool SlotMark::allows(SlotState from, SlotState to) noexcept {
  switch (from) {
    case SlotState::kFree: return to == SlotState::kWriting;
    case SlotState::kWriting: return to == SlotState::kMixing || to == SlotState::kWritten;
    case SlotState::kMixing: return to == SlotState::kWritten;
    case SlotState::kWritten: return to == SlotState::kCopying || to == SlotState::kReady;
    case SlotState::kCopying: return to == SlotState::kReady;
    case SlotState::kReady: return to == SlotState::kHeld;
    case SlotState::kHeld: return to == SlotState::kFree;
  }
  return false;
}

std::uint64_t SlotMark::pack(Value value) noexcept {
  return value.sequence << kStateBits | static_cast<std::uint64_t>(value.state);
}

SlotMark::Value SlotMark::unpack(std::uint64_t word) noexcept {
  return {.sequence = word >> kStateBits, .state = static_cast<SlotState>(word & ((1U << kStateBits) - 1))};
}

void SlotMark::refuse(Value from, SlotState to) {
  throw Error(ErrorCode::kInternal, fmt::format("the slot of batch {} cannot go from {} to {}", from.sequence,
                                                to_string(from.state), to_string(to)));
}

SlotMark::Value SlotMark::load() const noexcept { return unpack(word_.load(std::memory_order_acquire)); }

bool SlotMark::is(std::uint64_t sequence, SlotState state) const noexcept {
  return word_.load(std::memory_order_acquire) == pack({.sequence = sequence, .state = state});
}

bool SlotMark::is_out(std::uint64_t sequence) const noexcept {
  const Value value = load();
  return value.sequence == sequence && value.is_out();
}

void SlotMark::begin(std::uint64_t sequence) {
  const Value now = load();
  if (!allows(now.state, SlotState::kWriting)) refuse(now, SlotState::kWriting);
  word_.store(pack({.sequence = sequence, .state = SlotState::kWriting}), std::memory_order_release);
}

void SlotMark::move_to(SlotState next) {
  const Value now = load();
  if (next == SlotState::kWriting || !allows(now.state, next)) refuse(now, next);
  word_.store(pack({.sequence = now.sequence, .state = next}), std::memory_order_release);
}

void SlotMark::take() {
  Value now = load();
  if (now.state == SlotState::kHeld) return;
  if (now.state != SlotState::kReady) refuse(now, SlotState::kHeld);
  std::uint64_t ready = pack(now);  // where it has changed by now, another consumer changed it to the same
  word_.compare_exchange_strong(ready, pack({.sequence = now.sequence, .state = SlotState::kHeld}));
}

}  // namespace headrace
