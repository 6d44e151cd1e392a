// The ring of slots within the budgets, and why it is as long as it is.
#include <fmt/format.h>

#include <algorithm>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/engine/stream_engine.h"

namespace headrace {
namespace {

// Bytes of the memory budget that batches may take where there is a choice.
constexpr std::uint64_t for_batches(std::uint64_t budget) { return budget / 4 * 3; }

// The caches of a core: what is larger has left them before it is read.
constexpr std::uint64_t kStreamedRing = std::uint64_t{8} << 20;

// How many slots of this size a budget holds, between `least` and `wanted`.
int slots_within(std::uint64_t budget, std::uint64_t slot, int least, int wanted) {
  if (budget == 0 || slot == 0) return wanted;
  return static_cast<int>(std::clamp<std::uint64_t>(budget / slot, static_cast<std::uint64_t>(least),
                                                    static_cast<std::uint64_t>(wanted)));
}

void charge_slot(ChargedBytes& charged, const MemoryBudget& budget, std::uint64_t slot, int least) {
  try {
    charged.hold(slot, "a batch");
  } catch (const Error&) {
    throw ConfigError(
        fmt::format("{} = {} does not hold {} {} of {} bytes: {} bytes are needed", budget.name(), budget.limit(),
                    least, least == 1 ? "batch" : "batches", slot, slot * static_cast<std::uint64_t>(least)),
        "raise the budget, or make the global batch smaller");
  }
}

}  // namespace

void StreamEngine::allocate_slots() {
  const Slot::Bytes one = Slot::bytes(*devices_, layout_, conversion());
  const int wanted = options_.prefetch + 1;
  const int least = std::min(wanted, 2);
  const int pageable = slots_within(for_batches(memory_budget_.limit()), one.pageable, least, wanted);
  const int pinned = slots_within(pinned_budget_.limit(), one.pinned, least, wanted);
  const int slots = std::min(pageable, pinned);
  for (int i = 0; i < slots; ++i) {
    ChargedBytes in_memory(memory_budget_), in_pinned(pinned_budget_);
    charge_slot(in_memory, memory_budget_, one.pageable, least);
    charge_slot(in_pinned, pinned_budget_, one.pinned, least);
    slots_.push_back(std::make_unique<Slot>(*devices_, host_.fields, layout_, conversion()));
    slots_.back()->pageable = std::move(in_memory);
    slots_.back()->pinned = std::move(in_pinned);
  }
  std::string reason = "as the options or the plan say";
  if (slots < wanted) {
    const bool by_memory = pageable <= pinned;
    reason = fmt::format("{} instead of {}: each batch takes {} bytes of the {} of {}", slots - 1, wanted - 1,
                         by_memory ? one.pageable : one.pinned,
                         by_memory ? memory_budget_.limit() : pinned_budget_.limit(),
                         by_memory ? memory_budget_.name() : pinned_budget_.name());
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
