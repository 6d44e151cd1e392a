// The slots that batches pass through, and the waits for them.
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

struct RingOptions {
  bool copied = false;     // batches are sent to devices
  bool in_order = true;    // in the order of their numbers
  bool in_bursts = false;  // the assembler sleeps until half of the slots came back
  // A batch that a consumer holds moves out of the way of a later one if another slot is free: batches without an
  // example are returned before those in front of them.
  bool moves_held = false;
};

// Thread-safe. Batch n uses slot n % size(), until a consumer has it and the slot is moved. Shared by streams that
// report having passed a batch: one of them may be the last to release it, after free_memory().
class Ring : public std::enable_shared_from_this<Ring> {
 public:
  // The batches [first, end) pass through it. All waits use `clock`. REQUIRES: `clock` outlives this.
  Ring(std::vector<std::unique_ptr<Slot>> slots, std::uint64_t first, std::uint64_t end, const Clock& clock,
       const RingOptions& options);

  // Returns the slot of a batch that no consumer has yet.
  Slot& slot_of(std::uint64_t sequence) const noexcept { return *places_[sequence % slots_.size()].load(); }
  // Returns the slot of a batch, too, that some replica has and others have not; any for one that is not out.
  Slot& find(std::uint64_t sequence) const noexcept;
  // Returns whether the batch has begun, or a slot is free for it. REQUIRES: mutex() is held, and all batches
  // before it have begun.
  bool has_slot(std::uint64_t sequence) const noexcept;
  const std::vector<std::unique_ptr<Slot>>& slots() const noexcept { return slots_; }
  std::uint64_t size() const noexcept { return slots_.size(); }
  std::uint64_t first() const noexcept { return first_; }
  std::uint64_t end() const noexcept { return end_.load(); }
  bool copied() const noexcept { return options_.copied; }
  // Returns how many batches come back between two wake-ups of the assembler.
  std::uint64_t burst() const noexcept { return burst_; }
  const Clock& clock() const noexcept { return clock_; }

  // Waits for, and returns, the assembler's next task: batch `next` begins, or written() is copied. Copies come
  // first: they send older batches than begin. `next_copy` is the first batch that was not sent.
  enum class Turn { kStop, kBegin, kCopy };
  Turn next_turn(std::uint64_t next, std::uint64_t next_copy);
  // Returns the batch to copy, if one is: `next_copy`, or if batches are not sent in order, the first that is
  // written.
  std::optional<std::uint64_t> written(std::uint64_t next_copy) const noexcept;
  // Held -> Free -> Writing: puts `sequence` in its slot, held for all replicas.
  Slot& begin(std::uint64_t sequence);

  // Lets only batches below `limit` begin. For a stream, whose records decide. The run's end may become known.
  void allow(std::uint64_t limit, std::optional<std::uint64_t> end = std::nullopt);
  // Ends the run before batch `end`, which has not begun; with a failure if the stream broke there.
  void end_at(std::uint64_t end, std::optional<Failure> failure);
  std::optional<Failure> end_failure() const;
  bool is_held_back(std::uint64_t sequence) const;

  // Writing or Mixing -> Written, and Ready if nothing is copied. Called by the thread that completed the batch.
  void complete(Slot& slot);
  // Called by the assembler, after the copies were submitted.
  void make_ready(Slot& slot);

  // Waits until the batch is out, or the stream has ended before it, stopped or broken off; returns false after
  // `seconds`, 0: never. Called by consumers.
  bool wait_until_out(std::uint64_t sequence, double seconds);
  // Waits likewise until done(), which is called under mutex() when a batch comes out and when the stream ends.
  template <typename Done>
  bool wait_until(const Done& done, double seconds) {
    std::unique_lock lock(mutex_);
    const auto over = [&] { return done() || broken_off_ || stopped_.load(); };
    if (over()) return true;
    const Waiting waiting(*this);
    return clock_.wait_until(out_, lock, seconds > 0 ? clock_.after(seconds) : Clock::kNever, over);
  }
  // Ready -> Held, from then on it moves out of the way (RingOptions::moves_held).
  void hold(Slot& slot);
  // Marks a batch of this slot as held by a consumer, until release().
  static void take(Slot& slot) noexcept { slot.out.fetch_add(1, std::memory_order_relaxed); }
  // Releases the replica's batch once `consumer` has reached this point; null: at once. After free_memory() the
  // last one waits for the consumers and frees the slot's memory. Does nothing for a batch that a forked process
  // inherited: the parent returns it.
  void release(Slot& slot, int replica, Stream* consumer) noexcept;

  // Ends the stream, for every consumer that finds no batch, with the failure that ended an engine thread. The
  // first failure counts.
  void break_off(Failure failure) noexcept;
  std::optional<Failure> broken_off() const;
  void stop() noexcept;
  const std::atomic<bool>& stopped() const noexcept { return stopped_; }

  // Returns the time from construction to the first batch that was ready; 0 if none was.
  std::uint64_t first_batch_ns() const noexcept { return first_batch_ns_.load(); }

  // Frees the slots' memory; that of a slot that consumers hold when they return it. Only release(), stopped() and
  // the slots' counters may be used afterwards.
  void free_memory() noexcept;

  std::mutex& mutex() noexcept { return mutex_; }

 private:
  // Counts a waiting consumer, and wakes the assembler from a burst. REQUIRES: constructed and destroyed under
  // mutex().
  class Waiting {
   public:
    explicit Waiting(Ring& ring) : ring_(ring) {
      ++ring_.waiting_;
      if (ring_.burst_ > 1) ring_.assembler_.notify_one();
    }
    ~Waiting() { --ring_.waiting_; }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    Ring& ring_;
  };

  bool may_begin(std::uint64_t sequence) const;
  std::atomic<Slot*>* place_for(std::uint64_t sequence, bool (*is_free)(const Slot&)) const;
  void wait_for_slot(std::unique_lock<std::mutex>& lock, std::uint64_t sequence);
  bool ends_burst(const Slot& slot) const noexcept;
  static void free_passed(Slot& slot) noexcept;
  static void wake_assembler(const std::weak_ptr<Ring>& ring);

  std::vector<std::unique_ptr<Slot>> slots_;
  std::unique_ptr<std::atomic<Slot*>[]> places_;  // of batch n: n % size(); set by mutex_
  std::uint64_t first_;
  std::atomic<std::uint64_t> end_;  // set by mutex_
  const Clock& clock_;
  RingOptions options_;
  std::uint64_t burst_;
  long process_;
  std::uint64_t start_ns_;
  mutable std::mutex mutex_;
  std::condition_variable out_;        // for consumers
  std::condition_variable assembler_;  // a slot came back, or was written
  // By mutex_.
  int waiting_ = 0;      // consumers
  std::uint64_t limit_;  // of batches that may begin
  std::optional<Failure> end_failure_;
  std::optional<Failure> broken_off_;
  std::atomic<bool> stopped_{false};  // set by mutex_
  std::atomic<std::uint64_t> first_batch_ns_{0};
};

// Runs `body` for a thread or lane: any exception but Abandoned ends the stream. Expected failures belong to their
// batch; this handles the rest, such as memory that runs out in between.
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
