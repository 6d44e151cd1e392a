// The slots that batches go through, and where threads wait for them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "headrace/devices/base/clock.h"
#include "headrace/pipeline/engine/slot.h"
#include "headrace/pipeline/tasks/thread_state.h"

namespace headrace {

// Thread-safe. Batch n goes through slot n % size(). Shared by streams that report that they passed a batch: one
// of them may be the last to let go of it, after free_memory().
class Ring : public std::enable_shared_from_this<Ring> {
 public:
  // The batches [first, end) go through it; `copied`: they are sent to devices. All waits go by `clock`, which
  // must outlive it.
  Ring(std::vector<std::unique_ptr<Slot>> slots, std::uint64_t first, std::uint64_t end, bool copied,
       const Clock& clock);

  Slot& slot_of(std::uint64_t sequence) const noexcept { return *slots_[sequence % slots_.size()]; }
  const std::vector<std::unique_ptr<Slot>>& slots() const noexcept { return slots_; }
  std::uint64_t size() const noexcept { return slots_.size(); }
  std::uint64_t first() const noexcept { return first_; }
  std::uint64_t end() const noexcept { return end_.load(); }
  bool copied() const noexcept { return copied_; }
  const Clock& clock() const noexcept { return clock_; }

  // The assembler. What to do next; waits for it. Copies come first: what they send is older than what begins.
  enum class Turn { kStop, kBegin, kCopy };
  Turn next_turn(std::uint64_t next, std::uint64_t next_copy);
  // Held -> Free -> Writing: `sequence` is in its slot from now on, held for all replicas.
  Slot& begin(std::uint64_t sequence);

  // Of a stream, whose records decide. Only batches below `limit` may begin.
  void allow(std::uint64_t limit);
  // No batch from `end` on, which did not begin; with a failure where the stream broke there.
  void end_at(std::uint64_t end, std::optional<Failure> failure);
  std::optional<Failure> end_failure() const;
  bool is_held_back(std::uint64_t sequence) const;

  // Whoever wrote the last of the batch: Writing or Mixing -> Written, and Ready where nothing is copied.
  void complete(Slot& slot);
  // The assembler, after the copies were submitted.
  void make_ready(Slot& slot);

  // Consumers. Waits until the batch is out, the stream has ended before it, stopped or broken off; false after
  // `seconds`, 0: never.
  bool wait_until_out(std::uint64_t sequence, double seconds);
  // A consumer has a batch of this slot from now on, until release().
  static void take(Slot& slot) noexcept { slot.out.fetch_add(1, std::memory_order_relaxed); }
  // The replica needs the batch no longer once `consumer` has come this far; null: at once. After free_memory()
  // the last one waits for the consumers and frees the slot's. Of a batch that a forked process inherited nothing
  // is done: it is the parent's to give back.
  void release(Slot& slot, int replica, Stream* consumer) noexcept;

  // What ended one of the engine's threads ends the stream for every consumer that finds no batch. The first one
  // counts.
  void break_off(Failure failure) noexcept;
  std::optional<Failure> broken_off() const;
  void stop() noexcept;
  const std::atomic<bool>& stopped() const noexcept { return stopped_; }

  // From construction to the first batch that was ready; 0: none was.
  std::uint64_t first_batch_ns() const noexcept { return first_batch_ns_.load(); }

  // Frees the slots' memory; of one that consumers have, when they give it back. Nothing but release(), stopped()
  // and the slots' counters may be used afterwards.
  void free_memory() noexcept;

  std::mutex& mutex() noexcept { return mutex_; }

 private:
  bool may_begin(std::uint64_t sequence) const;
  void wait_for_slot(std::unique_lock<std::mutex>& lock, std::uint64_t sequence);
  static void free_passed(Slot& slot) noexcept;
  static void wake_assembler(const std::weak_ptr<Ring>& ring);

  std::vector<std::unique_ptr<Slot>> slots_;
  std::uint64_t first_;
  std::atomic<std::uint64_t> end_;  // set by mutex_
  bool copied_;
  const Clock& clock_;
  long process_;
  std::uint64_t start_ns_;
  mutable std::mutex mutex_;
  std::condition_variable out_;        // for consumers
  std::condition_variable assembler_;  // a slot came back, or was written
  // By mutex_.
  std::uint64_t limit_;  // of batches that may begin
  std::optional<Failure> end_failure_;
  std::optional<Failure> broken_off_;
  std::atomic<bool> stopped_{false};  // set by mutex_
  std::atomic<std::uint64_t> first_batch_ns_{0};
};

// Runs `body` for a thread or lane: what it throws, but for Abandoned, ends the stream. What is expected to fail
// is the failure of its batch; this is for the rest, as memory that runs out in between.
template <typename Body>
void end_stream_on_error(Ring& ring, const ThreadState& state, const Body& body) {
  try {
    body();
  } catch (const Abandoned&) {
    throw;
  } catch (const std::exception& error) {
    ring.break_off(Failure::of_thread(error, state.doing()));
  } catch (...) {
    ring.break_off(Failure::of_thread(UnnamedException(), state.doing()));
  }
}

}  // namespace headrace
