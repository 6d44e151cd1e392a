// What becomes of rows that could not be written.
#pragma once

#include <cstdint>

#include "headrace/pipeline/engine/record_reader.h"
#include "headrace/pipeline/engine/slot.h"

namespace headrace {

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
