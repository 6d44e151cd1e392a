// The ring of slots within the budgets, and why it is as long as it is.
#include <fmt/format.h>

#include <algorithm>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/machine_memory.h"
#include "headrace/pipeline/engine/stream_engine.h"

namespace headrace {
namespace {

// Bytes of the memory budget that batches may take where there is a choice.
constexpr std::uint64_t for_batches(std::uint64_t budget) { return budget / 4 * 3; }

// The caches of a core: what is larger has left them before it is read.
constexpr std::uint64_t kStreamedRing = std::uint64_t{8} << 20;

// What may be taken of one kind of memory.
struct Room {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint64_t taken = 0;  // by others
  std::uint64_t slot = 0;   // bytes of it a batch takes
  bool is_budget = false;

  // How many slots `part` of it holds, between `least` and `wanted`.
  int slots(int least, int wanted, std::uint64_t part) const {
    if (slot == 0) return wanted;
    return static_cast<int>(std::clamp<std::uint64_t>(std::min(part, bytes - taken) / slot,
                                                      static_cast<std::uint64_t>(least),
                                                      static_cast<std::uint64_t>(wanted)));
  }
  // ConfigError where it does not hold so many.
  void want(int slots) const {
    const std::uint64_t needed = slot * static_cast<std::uint64_t>(slots);
    if (taken <= bytes && needed <= bytes - taken) return;
    throw ConfigError(fmt::format("{} = {} does not hold {} {} of {} bytes: {} bytes are needed", name, bytes,
                                  slots, slots == 1 ? "batch" : "batches", slot, needed),
                      is_budget ? "raise the budget, or make the global batch smaller"
                                : "make the global batch smaller, or send smaller examples");
  }
};

// A budget, or the machine's memory where there is none.
Room room_of(const MemoryBudget& budget, std::uint64_t slot) {
  const std::uint64_t machine = machine_memory_bytes();
  if (budget.limit() == 0 || budget.limit() > machine) {
    return {.name = "the machine's memory", .bytes = machine, .taken = budget.used(), .slot = slot};
  }
  return {.name = budget.name(), .bytes = budget.limit(), .taken = budget.used(), .slot = slot, .is_budget = true};
}

}  // namespace

void StreamEngine::allocate_slots() {
  const Slot::Bytes one = Slot::bytes(*devices_, layout_, conversion());
  const Room memory = room_of(memory_budget_, one.pageable), pins = room_of(pinned_budget_, one.pinned);
  const int wanted = options_.prefetch + 1;
  const int least = std::min(wanted, 2);
  memory.want(least);
  pins.want(least);
  const int pageable = memory.slots(least, wanted, for_batches(memory.bytes));
  const int pinned = pins.slots(least, wanted, pins.is_budget ? pins.bytes : for_batches(pins.bytes));
  const int slots = std::min(pageable, pinned);
  for (int i = 0; i < slots; ++i) {
    ChargedBytes in_memory(memory_budget_), in_pinned(pinned_budget_);
    in_memory.hold(one.pageable, "a batch");
    in_pinned.hold(one.pinned, "a batch");
    slots_.push_back(std::make_unique<Slot>(*devices_, host_.fields, layout_, conversion()));
    slots_.back()->pageable = std::move(in_memory);
    slots_.back()->pinned = std::move(in_pinned);
  }
  std::string reason = "as the options or the plan say";
  if (slots < wanted) {
    const Room& tighter = pageable <= pinned ? memory : pins;
    reason = fmt::format("{} instead of {}: each batch takes {} bytes of the {} of {}", slots - 1, wanted - 1,
                         tighter.slot, tighter.bytes, tighter.name);
  }
  // A ring that no cache holds until its consumer comes round to it.
  if (slots_.size() * (one.pageable + one.pinned) >= kStreamedRing) stores_ = Stores::kStreamed;
  note({.what = "prefetch", .value = std::to_string(slots - 1), .reason = reason});
}

// Replaces what was said about the same thing.
void StreamEngine::note(Choice choice) {
  const std::lock_guard lock(choices_mutex_);
  const auto known = std::find_if(choices_.begin(), choices_.end(),
                                  [&](const Choice& other) { return other.what == choice.what; });
  if (known != choices_.end()) {
    *known = std::move(choice);
  } else {
    choices_.push_back(std::move(choice));
  }
}

}  // namespace headrace
