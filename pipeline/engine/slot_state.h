// The state of a slot of the ring, and its batch. README.md documents the transitions.
#pragma once

#include <atomic>
#include <cstdint>

namespace headrace {

enum class SlotState : std::uint8_t { kFree, kWriting, kMixing, kWritten, kCopying, kReady, kHeld };

const char* to_string(SlotState state) noexcept;

// State and batch of one slot, read and changed together. Readers need no lock; only one thread may make each
// transition, except for Ready -> Held, which every consumer may try.
class SlotMark {
 public:
  struct Value {
    std::uint64_t sequence = 0;  // of the batch; in kFree, of the previous one
    SlotState state = SlotState::kFree;
    bool is_out() const noexcept { return state == SlotState::kReady || state == SlotState::kHeld; }
  };

  Value load() const noexcept;
  bool is(std::uint64_t sequence, SlotState state) const noexcept;
  // Returns whether the batch may be taken: it is ready, or some replica has it already.
  bool is_out(std::uint64_t sequence) const noexcept;

  // Free -> Writing, for the batch. Throws Error(kInternal) in any other state, as do the following two.
  void begin(std::uint64_t sequence);
  void move_to(SlotState next);
  // Ready -> Held; does nothing if another replica was first.
  void take();

  // Returns whether the transition exists.
  static bool allows(SlotState from, SlotState to) noexcept;

 private:
  static std::uint64_t pack(Value value) noexcept;
  static Value unpack(std::uint64_t word) noexcept;
  [[noreturn]] static void refuse(Value from, SlotState to);

  std::atomic<std::uint64_t> word_{0};
};

}  // namespace headrace
