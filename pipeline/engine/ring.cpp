#include "headrace/pipeline/engine/ring.h"

#include <unistd.h>

#include <algorithm>

namespace headrace {
namespace {

// The interval at which a slot is polled if its device cannot signal that it is done, or failed before it did.
constexpr std::uint64_t kPollNs = 500'000;

bool is_given_back(const Slot& slot) { return slot.mark.load().state == SlotState::kHeld && slot.holders == 0; }

// Returns whether its memory may be written.
bool may_write(const Slot& slot) {
  return slot.mark.load().state == SlotState::kFree || (is_given_back(slot) && slot.is_passed());
}

}  // namespace

Ring::Ring(std::vector<std::unique_ptr<Slot>> slots, std::uint64_t first, std::uint64_t end, const Clock& clock,
           const RingOptions& options)
    : slots_(std::move(slots)),
      places_(std::make_unique<std::atomic<Slot*>[]>(slots_.size())),
      first_(first),
      end_(end),
      clock_(clock),
      options_(options),
      burst_(options.in_bursts ? std::max<std::uint64_t>(1, slots_.size() / 2) : 1),
      process_(getpid()),
      start_ns_(clock.now()),
      limit_(end) {
  for (std::size_t i = 0; i < slots_.size(); ++i) places_[i] = slots_[i].get();
}

Slot& Ring::find(std::uint64_t sequence) const noexcept {
  Slot& usual = slot_of(sequence);
  if (!options_.moves_held || usual.mark.load().sequence == sequence) return usual;
  const auto moved = std::ranges::find_if(slots_, [&](const auto& one) { return one->mark.is_out(sequence); });
  return moved == slots_.end() ? usual : **moved;
}

// Returns the place whose slot is free for the batch; null if none is. One that no consumer has stays in its
// place.
std::atomic<Slot*>* Ring::place_for(std::uint64_t sequence, bool (*is_free)(const Slot&)) const {
  std::atomic<Slot*>& usual = places_[sequence % size()];
  if (is_free(*usual.load())) return &usual;
  if (!options_.moves_held || usual.load()->mark.load().state != SlotState::kHeld) return nullptr;
  std::atomic<Slot*>* const end = places_.get() + size();
  std::atomic<Slot*>* const other =
      std::find_if(places_.get(), end, [&](auto& one) { return is_free(*one.load()); });
  return other == end ? nullptr : other;
}

bool Ring::has_slot(std::uint64_t sequence) const noexcept {
  const SlotMark::Value mark = slot_of(sequence).mark.load();
  if (mark.sequence == sequence && mark.state != SlotState::kFree) return true;
  return place_for(sequence, [](const Slot& slot) { return slot.holders == 0; }) != nullptr;
}

bool Ring::may_begin(std::uint64_t sequence) const {
  return sequence < end() && sequence < limit_ && place_for(sequence, may_write) != nullptr;
}

Ring::Turn Ring::next_turn(std::uint64_t next, std::uint64_t next_copy) {
  std::unique_lock lock(mutex_);
  for (;; wait_for_slot(lock, next)) {
    if (stopped_.load()) return Turn::kStop;
    if (options_.copied && written(next_copy)) return Turn::kCopy;
    if (may_begin(next)) return Turn::kBegin;
    if (next >= end() && (!options_.copied || next_copy >= end())) return Turn::kStop;
  }
}

std::optional<std::uint64_t> Ring::written(std::uint64_t next_copy) const noexcept {
  const std::uint64_t end = next_copy + (options_.in_order ? 1 : size());
  for (std::uint64_t sequence = next_copy; sequence < end; ++sequence) {
    if (slot_of(sequence).mark.is(sequence, SlotState::kWritten)) return sequence;
  }
  return std::nullopt;
}

// A call returns a slot that is still held; a returned slot waits only for its device.
void Ring::wait_for_slot(std::unique_lock<std::mutex>& lock, std::uint64_t sequence) {
  const bool given_back = sequence < end() && sequence < limit_ && place_for(sequence, is_given_back) != nullptr;
  clock_.wait(assembler_, lock, given_back ? clock_.now() + (waiting_ > 0 ? 1 : burst_) * kPollNs : Clock::kNever);
}

// Returns whether this batch wakes the assembler although no consumer waits.
bool Ring::ends_burst(const Slot& slot) const noexcept { return slot.mark.load().sequence % burst_ == 0; }

Slot& Ring::begin(std::uint64_t sequence) {
  const std::lock_guard lock(mutex_);
  if (options_.moves_held) {
    std::atomic<Slot*>& usual = places_[sequence % size()];
    std::atomic<Slot*>* const place = place_for(sequence, may_write);
    if (place != nullptr) place->store(usual.exchange(place->load()));
  }
  Slot& slot = slot_of(sequence);
  if (slot.mark.load().state == SlotState::kHeld) slot.mark.move_to(SlotState::kFree);
  slot.mark.begin(sequence);
  slot.holders = static_cast<int>(slot.shares.size());
  for (SlotShare& share : slot.shares) share.released = false;
  return slot;
}

void Ring::allow(std::uint64_t limit, std::optional<std::uint64_t> end) {
  {
    const std::lock_guard lock(mutex_);
    limit_ = limit;
    if (end) end_.store(*end);
  }
  assembler_.notify_one();
}

void Ring::end_at(std::uint64_t end, std::optional<Failure> failure) {
  {
    const std::lock_guard lock(mutex_);
    end_.store(end);
    limit_ = end;
    end_failure_ = std::move(failure);
  }
  out_.notify_all();
  assembler_.notify_one();
}

std::optional<Failure> Ring::end_failure() const {
  const std::lock_guard lock(mutex_);
  return end_failure_;
}

bool Ring::is_held_back(std::uint64_t sequence) const {
  const std::lock_guard lock(mutex_);
  return sequence >= limit_;
}

void Ring::complete(Slot& slot) {
  {
    const std::lock_guard lock(mutex_);
    slot.mark.move_to(SlotState::kWritten);
  }
  if (!options_.copied) return make_ready(slot);
  assembler_.notify_one();
}

void Ring::make_ready(Slot& slot) {
  if (first_batch_ns_.load(std::memory_order_relaxed) == 0) first_batch_ns_.store(clock_.now() - start_ns_);
  {
    const std::lock_guard lock(mutex_);
    slot.mark.move_to(SlotState::kReady);
  }
  out_.notify_all();
}

bool Ring::wait_until_out(std::uint64_t sequence, double seconds) {
  return wait_until([&] { return find(sequence).mark.is_out(sequence) || sequence >= end(); }, seconds);
}

void Ring::hold(Slot& slot) {
  slot.mark.take();
  if (!options_.moves_held) return;
  { const std::lock_guard lock(mutex_); }  // so that it is not between its look and its sleep
  assembler_.notify_one();
}

void Ring::wake_assembler(const std::weak_ptr<Ring>& weak) {
  const std::shared_ptr<Ring> ring = weak.lock();
  if (ring == nullptr) return;
  { const std::lock_guard lock(ring->mutex_); }  // so that it is not between its look and its sleep
  ring->assembler_.notify_one();
}

void Ring::release(Slot& slot, int replica, Stream* consumer) noexcept {
  if (getpid() != process_) return;
  SlotShare& share = slot.shares[static_cast<std::size_t>(replica)];
  bool wakes = ends_burst(slot);
  bool fenced = false;
  try {
    if (consumer != nullptr) {
      consumer->record(*share.fence);
      fenced = true;
      // A device that copies is not slowed down by a call in its stream: there the assembler looks for itself.
      if (!share.device && wakes) consumer->call([ring = weak_from_this()] { wake_assembler(ring); });
    }
  } catch (const std::exception&) {
    // A stream that cannot record has failed: its work is over, and its own error says so.
  }
  bool orphaned = false;  // the loader is gone, and nobody else has a batch of the slot
  {
    const std::lock_guard lock(mutex_);
    share.fenced = fenced;
    share.released = true;
    --slot.holders;
    wakes = wakes || waiting_ > 0;
    orphaned = slot.out.fetch_sub(1, std::memory_order_relaxed) == 1 && slot.outlives_ring;
  }
  if (orphaned) return free_passed(slot);
  if (wakes) assembler_.notify_one();
}

void Ring::free_passed(Slot& slot) noexcept {
  for (const SlotShare& share : slot.shares) {
    try {
      if (share.device) share.ready->wait();
      if (share.fenced) share.fence->wait();
    } catch (const std::exception&) {
      // The device is lost, and with it the work that was to be waited for.
    }
  }
  slot.free_memory();
}

void Ring::break_off(Failure failure) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!broken_off_) broken_off_ = std::move(failure);
  }
  out_.notify_all();
}

std::optional<Failure> Ring::broken_off() const {
  const std::lock_guard lock(mutex_);
  return broken_off_;
}

void Ring::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopped_.store(true);
  }
  out_.notify_all();
  assembler_.notify_all();
}

void Ring::free_memory() noexcept {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& slot : slots_) slot->outlives_ring = slot->out.load(std::memory_order_relaxed) > 0;
  }
  for (const auto& slot : slots_) {
    if (!slot->outlives_ring) slot->free_memory();
  }
}

}  // namespace headrace
