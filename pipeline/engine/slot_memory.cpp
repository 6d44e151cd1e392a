#include "headrace/pipeline/engine/slot_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/failures.h"
#include "headrace/devices/base/memory.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/engine/device_conversion.h"
#include "headrace/pipeline/prefetch_choice.h"

namespace headrace {
namespace {

// The caches of a core: what is larger has left them before it is read.
constexpr std::uint64_t kMinNonTemporalRing = std::uint64_t{8} << 20;

// The available amount of one kind of memory: a budget, or what there is.
struct Room {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint64_t taken = 0;  // by others
  std::uint64_t slot = 0;   // bytes of it a batch takes
  bool is_budget = false, is_machine = false;
  bool all_for_batches = false;  // else three quarters of it, if there is a choice

  // How many slots it holds, between `min` and `wanted`.
  int slots(int min, int wanted) const {
    if (slot == 0) return wanted;
    const std::uint64_t part = all_for_batches ? bytes : bytes / 4 * 3;
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
Room room_of(const MemoryBudget& budget, std::uint64_t slot, bool all_for_batches) {
  const std::uint64_t machine = machine_memory_bytes();
  if (budget.limit() == 0 || budget.limit() > machine) {
    return {.name = "the machine's memory",
            .bytes = machine,
            .taken = budget.used(),
            .slot = slot,
            .is_machine = true};
  }
  return {.name = budget.name(),
          .bytes = budget.limit(),
          .taken = budget.used(),
          .slot = slot,
          .is_budget = true,
          .all_for_batches = all_for_batches};
}

// From the first one on: a run can use no more slots. Of a stream, whose length is unknown, more than there can
// be.
std::uint64_t batches_left(const RunPlan& run) {
  return std::max<std::uint64_t>(run.schedule.batches(), run.first + 1) - run.first;
}

// Returns what holds the parts of a batch: the host's memory, pinned memory, and that of the devices.
std::array<Room, 3> rooms_of(const DeviceGroup& devices, const Budgets& budgets, const Slot::Bytes& slot) {
  Room on_device{.name = "the free memory of a device", .slot = slot.on_device};
  if (slot.on_device > 0) on_device.bytes = devices.free_bytes_each();
  return {room_of(budgets.memory, slot.pageable, false), room_of(budgets.pinned, slot.pinned, true), on_device};
}

// How many slots there will be.
struct SlotCount {
  int asked = 0, slots = 0;
  std::string reason = {};  // of fewer than asked
};

// Returns the number of slots that a run can do with.
int min_slots(int wanted) { return std::min(wanted, 2); }

SlotCount count_slots(const RunPlan& run, std::span<const Room> rooms) {
  const int asked = run.options.prefetch + 1;
  const std::uint64_t left = batches_left(run);
  const int wanted = static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(asked), left));
  SlotCount count{.asked = asked, .slots = wanted};
  if (wanted < asked) {
    count.reason = left == 1 ? "the run has 1 batch" : fmt::format("the run has {} batches", left);
  }
  for (const Room& room : rooms) {
    // Leaves more of the machine's memory free, as if the run were longer: no run may take all of it.
    room.want(min_slots(room.is_machine ? asked : wanted));
    const int fit = room.slots(min_slots(wanted), wanted);
    if (fit >= count.slots) continue;
    count.slots = fit;
    count.reason = fmt::format("each batch takes {} bytes of the {} of {}", room.slot, room.bytes,
                               room.is_budget ? named(room.name) : room.name);
  }
  return count;
}

Choice choice_of(const SlotCount& count) {
  const bool fewer = count.slots < count.asked;
  return {.what = "prefetch",
          .value = std::to_string(count.slots - 1),
          .reason = fewer ? fmt::format("{} instead of {}: {}", count.slots - 1, count.asked - 1, count.reason)
                          : "as the options or the plan say"};
}

}  // namespace

SlotMemory allocate_slots(const RunPlan& run, DeviceGroup& devices, const DeviceConversion* conversion,
                          Budgets& budgets, Choices& choices) {
  const Slot::Bytes one = Slot::bytes(devices, run.layout, conversion);
  SlotCount count = count_slots(run, rooms_of(devices, budgets, one));
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
    } catch (const DeviceError& error) {
      if (error.code() != ErrorCode::kOutOfMemory || i < min_slots(count.slots)) throw;
      count.slots = i;
      count.reason = error.what();
      break;
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
  if (DeviceConversion::is_needed(run)) conversion.emplace(devices, run);
  const Slot::Bytes one = Slot::bytes(devices, run.layout, conversion ? &*conversion : nullptr);
  return choice_of(count_slots(run, rooms_of(devices, budgets, one)));
}

}  // namespace headrace
