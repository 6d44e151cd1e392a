// How a row gets its record, and what becomes of rows that could not be written.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/pipeline/engine/run_plan.h"
#include "headrace/pipeline/engine/slot.h"
#include "headrace/pipeline/tasks/thread_state.h"

namespace headrace {

// How a record's bytes are had: from the cache, else from the source, again where the system refuses for a
// moment. Thread-safe.
class RecordReader {
 public:
  // `stopped`: nothing is asked for again. `clock`: retries wait by it. All must outlive this.
  RecordReader(const RunPlan& run, const std::atomic<bool>& stopped, const Clock& clock)
      : run_(run), stopped_(stopped), clock_(clock) {}

  // A record's cached sample, empty where there is none. What a filter could not judge is not looked for: throws
  // FilterError.
  std::span<const std::byte> find_cached(std::uint64_t record, std::vector<std::byte>& scratch) const;
  // After find_cached(): the source's bytes. Throws what read_with_retries() does.
  RecordView read(std::uint64_t record, std::vector<std::byte>& scratch, ThreadState& state) const;

  // Small samples come from all over memory, and so does what a cache knows of each: both are fetched while others
  // are worked on. `records` come after this one; where the next one's sample lies.
  std::span<const std::byte> look_ahead(std::span<const std::uint64_t> records) const noexcept;

 private:
  RecordView read_once(std::uint64_t record, std::vector<std::byte>& scratch, ThreadState& state) const;

  const RunPlan& run_;
  const std::atomic<bool>& stopped_;
  const Clock& clock_;
};

// As ErrorPolicy says. Thread-safe for different slots; fail() and note() for different rows of one, too.
class RowErrors {
 public:
  RowErrors(const RunPlan& run, const RecordReader& reader) : run_(run), reader_(reader) {}

  // Runs something for one example; what it throws, but for Abandoned, is fail()ed.
  template <typename Run>
  void guard(Slot& slot, std::int64_t example, Run run) const;

  void fail(Slot& slot, std::int64_t example, const std::exception& cause) const;
  // Keeps what there is to say of the images of a row that was written, and clears it.
  void take_notes(Slot& slot, std::int64_t example, ImageNotes& notes) const;
  // All rows of the batch were written or failed: closes the gaps, or writes substitutes. By one thread.
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
