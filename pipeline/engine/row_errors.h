// Reads the records of rows, and handles rows that could not be written.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/pipeline/engine/run_plan.h"
#include "headrace/pipeline/engine/slot.h"
#include "headrace/pipeline/tasks/thread_state.h"

namespace headrace {

// Reads a record's bytes: from the cache, else from the source, with retries if the system temporarily refuses.
// Thread-safe.
class RecordReader {
 public:
  // `stopped`: no retries. `clock`: used by the waits between retries. REQUIRES: all arguments outlive this.
  RecordReader(const RunPlan& run, const std::atomic<bool>& stopped, const Clock& clock)
      : run_(run), stopped_(stopped), clock_(clock) {}

  // Returns a record's sample of the last cache that has it, empty if none has. Throws FilterError, without a
  // look-up, for a record that a filter could not judge.
  FoundSample find_cached(std::uint64_t record, std::vector<std::byte>& scratch) const;
  // Returns the source's bytes. Throws as read_with_retries() does. REQUIRES: after find_cached().
  RecordView read(std::uint64_t record, std::vector<std::byte>& scratch, ThreadState& state) const;

  // Prefetches the samples of `records`, which follow this one, and the cache's entries, since both are scattered
  // over memory. Returns the location of the next record's sample.
  std::span<const std::byte> look_ahead(std::span<const std::uint64_t> records) const noexcept;

 private:
  RecordView read_once(std::uint64_t record, std::vector<std::byte>& scratch, ThreadState& state) const;

  const RunPlan& run_;
  const std::atomic<bool>& stopped_;
  const Clock& clock_;
};

// Applies the ErrorPolicy. Thread-safe for different slots; fail() and note() also for different rows of one.
class RowErrors {
 public:
  RowErrors(const RunPlan& run, const RecordReader& reader) : run_(run), reader_(reader) {}

  // Runs a function for one example; passes any exception but Abandoned to fail().
  template <typename Run>
  void guard(Slot& slot, std::int64_t example, Run run) const;

  void fail(Slot& slot, std::int64_t example, const std::exception& cause) const;
  // Stores the notes on the images of a written row, and clears them.
  void take_notes(Slot& slot, std::int64_t example, ImageNotes& notes) const;
  // Closes the gaps of a batch, or writes substitutes. Called by one thread. REQUIRES: all rows were written or
  // failed.
  void settle(Slot& slot, ThreadState& state) const;

 private:
  void substitute(Slot& slot, BadRecord& bad, ThreadState& state) const;

  const RunPlan& run_;
  const RecordReader& reader_;
};

template <typename Run>
void RowErrors::guard(Slot& slot, std::int64_t example, Run run) const {
  try {
    run();
  } catch (const Abandoned&) {
    throw;
  } catch (const std::exception& error) {
    fail(slot, example, error);
  } catch (...) {
    fail(slot, example, UnnamedException());
  }
}

}  // namespace headrace
