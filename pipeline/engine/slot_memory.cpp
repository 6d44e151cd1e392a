#include "headrace/pipeline/engine/slot_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/failures.h"
#include "headrace/devices/base/memory.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/engine/device_conversion.h"
#include "headrace/pipeline/prefetch_choice.h"

namespace headrace {
namespace {

// Returns the bytes of the memory budget that batches may take if there is a choice.
constexpr std::uint64_t for_batches(std::uint64_t budget) { return budget / 4 * 3; }

// The caches of a core: what is larger has left them before it is read.
constexpr std::uint64_t kMinNonTemporalRing = std::uint64_t{8} << 20;

// The available amount of one kind of memory.
struct Room {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint64_t taken = 0;  // by others
  std::uint64_t slot = 0;   // bytes of it a batch takes
  bool is_budget = false;

  // How many slots `part` of it holds, between `min` and `wanted`.
  int slots(int min, int wanted, std::uint64_t part) const {
    if (slot == 0) return wanted;
    return static_cast<int>(std::clamp<std::uint64_t>(std::min(part, bytes - taken) / slot,
                                                      static_cast<std::uint64_t>(min),
                                                      static_cast<std::uint64_t>(wanted)));
  }
  // Throws ConfigError if there is no room for `slots`.
  void want(int slots) const {
    const std::uint64_t needed = slot * static_cast<std::uint64_t>(slots);
    if (taken <= bytes && needed <= bytes - taken) return;
    const std::string room = is_budget ? named(name, std::to_string(bytes)) : fmt::format("{} = {}", name, bytes);
    throw ConfigError(fmt::format("{} does not hold {} {} of {} bytes: {} bytes are needed", room, slots,
                                  slots == 1 ? "batch" : "batches", slot, needed),
                      is_budget ? "raise the budget, or make the global batch smaller"
                                : "make the global batch smaller, or send smaller examples");
  }
};

// Returns the budget, or the machine's memory if there is none.
Room room_of(const MemoryBudget& budget, std::uint64_t slot) {
  const std::uint64_t machine = machine_memory_bytes();
  if (budget.limit() == 0 || budget.limit() > machine) {
    return {.name = "the machine's memory", .bytes = machine, .taken = budget.used(), .slot = slot};
  }
  return {.name = budget.name(), .bytes = budget.limit(), .taken = budget.used(), .slot = slot, .is_budget = true};
}

// From the first one on: a run can use no more slots. Of a stream, whose length is unknown, more than there can
// be.
std::uint64_t batches_left(const RunPlan& run) {
  return std::max<std::uint64_t>(run.schedule.batches(), run.first + 1) - run.first;
}

// How many slots there will be.
struct SlotCount {
  int slots = 0;
  std::string reason = {};
};

SlotCount count_slots(const RunPlan& run, const Room& memory, const Room& pins) {
  const int asked = run.options.prefetch + 1;
  const std::uint64_t left = batches_left(run);
  const int wanted = static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(asked), left));
  const int min = std::min(wanted, 2);
  // Leaves more of the machine's memory free, as if the run were longer: no run may take all of it.
  for (const Room* room : {&memory, &pins}) room->want(room->is_budget ? min : std::min(asked, 2));
  const int pageable = memory.slots(min, wanted, for_batches(memory.bytes));
  const int pinned = pins.slots(min, wanted, pins.is_budget ? pins.bytes : for_batches(pins.bytes));
  const int count = std::min(pageable, pinned);
  if (count == asked) return {.slots = count, .reason = "as the options or the plan say"};
  std::string reason = fmt::format("{} instead of {}: ", count - 1, asked - 1);
  if (count == wanted) {
    reason += left == 1 ? "the run has 1 batch" : fmt::format("the run has {} batches", left);
    return {.slots = count, .reason = reason};
  }
  const Room& tighter = pageable <= pinned ? memory : pins;
  reason += fmt::format("each batch takes {} bytes of the {} of {}", tighter.slot, tighter.bytes,
                        tighter.is_budget ? named(tighter.name) : tighter.name);
  return {.slots = count, .reason = reason};
}

Choice choice_of(const SlotCount& count) {
  return {.what = "prefetch", .value = std::to_string(count.slots - 1), .reason = count.reason};
}

}  // namespace

SlotMemory allocate_slots(const RunPlan& run, DeviceGroup& devices, const DeviceConversion* conversion,
                          Budgets& budgets, Choices& choices) {
  const Slot::Bytes one = Slot::bytes(devices, run.layout, conversion);
  const Room memory = room_of(budgets.memory, one.pageable), pins = room_of(budgets.pinned, one.pinned);
  const SlotCount count = count_slots(run, memory, pins);
  SlotMemory made;
  for (int i = 0; i < count.slots; ++i) {
    ChargedBytes in_memory(budgets.memory), in_pinned(budgets.pinned);
    in_memory.hold(one.pageable, "a batch");
    in_pinned.hold(one.pinned, "a batch");
    try {
      made.slots.push_back(
          std::make_unique<Slot>(devices, run.host.fields, run.layout, conversion, run.shapes, run.plan.ragged));
    } catch (const std::bad_alloc&) {
      throw no_memory_for(fmt::format("batch {} of {}", i + 1, count.slots), one.pageable + one.pinned);
    }
    made.slots.back()->pageable = std::move(in_memory);
    made.slots.back()->pinned = std::move(in_pinned);
  }
  // Of a larger ring the processor's caches hold nothing until the consumer reads it.
  if (made.slots.size() * (one.pageable + one.pinned) >= kMinNonTemporalRing) made.stores = Stores::kNonTemporal;
  choices.note(choice_of(count));
  return made;
}

Choice choose_prefetch(const Dataset& dataset, DeviceGroup& devices, const LoaderOptions& options) {
  Budgets budgets(options);
  const RunPlan run(dataset, devices, options, budgets);
  std::optional<DeviceConversion> conversion;
  if (!run.split.passes.empty()) {
    conversion.emplace(devices, run.plan.fields, run.split.passes, run.layout, run.options.converted);
  }
  const Slot::Bytes one = Slot::bytes(devices, run.layout, conversion ? &*conversion : nullptr);
  return choice_of(count_slots(run, room_of(budgets.memory, one.pageable), room_of(budgets.pinned, one.pinned)));
}

}  // namespace headrace
