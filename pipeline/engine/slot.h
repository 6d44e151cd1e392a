// A place in the ring that batches are assembled in: memory on every replica, allocated once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "headrace/devices/device_group.h"
#include "headrace/pipeline/batch.h"
#include "headrace/pipeline/engine/batch_layout.h"
#include "headrace/pipeline/engine/claim_counter.h"
#include "headrace/pipeline/engine/device_conversion.h"
#include "headrace/pipeline/engine/mixing_part.h"
#include "headrace/pipeline/engine/slot_state.h"
#include "headrace/pipeline/operations/machinery/memory_budget.h"
#include "headrace/pipeline/plan/sample_program.h"
#include "headrace/pipeline/record.h"
#include "headrace/pipeline/tasks/failure.h"

namespace headrace {

// A record of a stream, which its batch's slot keeps: nobody could ask for it again.
struct StreamedRecord {
  std::vector<std::byte> bytes;
  RecordView view;           // into `bytes`
  std::exception_ptr error;  // why there is none; else null

  // Throws its error.
  const RecordView& get() const {
    if (error != nullptr) std::rethrow_exception(error);
    return view;
  }
};

// What a slot holds for one replica.
struct SlotShare {
  Device* where = nullptr;          // whose memory the batch is in
  Buffer host;                      // rows are written here: the batch itself, or pinned memory
  Buffer device;                    // where what is sent of `host` is copied to; empty where nothing is
  Buffer results;                   // of the fields that the device converts; else empty
  std::vector<TensorView> tensors;  // of the batch
  std::unique_ptr<Event> ready;     // recorded by the copy; never recorded where there is none
  std::unique_ptr<Event> fence;     // recorded by the consumer when it gives the batch back
  bool fenced = false;              // when it was last given back
  bool released = true;             // by the ring's mutex
  std::int64_t first = 0;           // number of its first example
  std::int64_t rows = 0;            // real examples
  std::int64_t used_rows = 0;       // rows that are not known to be zero
};

class Slot {
 public:
  // `fields` and `layout` are of the rows the host writes. `conversion` is null where the devices convert nothing.
  Slot(DeviceGroup& devices, const Fields& fields, const BatchLayout& layout, const DeviceConversion* conversion);

  // Host memory one takes.
  struct Bytes {
    std::uint64_t pageable = 0;
    std::uint64_t pinned = 0;
  };
  static Bytes bytes(DeviceGroup& devices, const BatchLayout& layout, const DeviceConversion* conversion);

  // Whether its memory may be written again: nobody holds it, the devices are done with it. Throws what their
  // events do. By the assembler.
  bool is_passed() const;

  // Frees what lies on devices, and the rows, and gives their bytes back to the budgets: nothing outside is needed
  // afterwards.
  void free_memory() noexcept;

  // Takes the next batch in: `records` and `passes` are filled in afterwards. Rows without an example
  // become zero. Like begin_failed() and replay() in state Writing.
  void begin(const BatchPosition& at);
  // The same of a batch that is not made. Leaves the memory alone: a device that failed may still be copying from
  // it.
  void begin_failed(const BatchPosition& at, Failure why);
  // Hands out what it holds once more, as another batch.
  void replay(const BatchPosition& at);
  SampleProgram::Rows rows(int replica, std::int64_t local_row) const noexcept;
  // Of an example, whichever replica has it.
  SampleProgram::Rows rows_of(std::int64_t example) const noexcept;
  // Remembers the failure of the smallest row. Thread-safe.
  void fail(Failure failure);
  // Remembers a row that could not be written, though the batch goes on without it. Thread-safe.
  void set_aside(BadRecord bad);
  // Remembers a row that was written of a damaged image, though the damage changed no pixel. Thread-safe.
  void warn(BadRecord warned);
  // Once it is known which records the rows hold: what the devices need to know of each. Nothing where they
  // convert nothing.
  void draw_windows(std::uint64_t seed);
  // Once all its records have their places: tells the devices where each row's sample is.
  void pick(const ResidentSamples& resident);
  // Once all rows were written: moves the others up over those that were set aside, and counts only them. `bad` is
  // in order of rows.
  void close_gaps();

  // The examples of this loader's replicas, and the guests behind them.
  std::int64_t examples() const noexcept { return static_cast<std::int64_t>(records.size()) - guests(); }
  std::int64_t guests() const noexcept { return static_cast<std::int64_t>(mixing_part.guests().size()); }
  // Rows that are to be written: those and the guests'.
  std::int64_t rows_to_write() const noexcept { return static_cast<std::int64_t>(records.size()); }
  // Takes the guests in that `mixing_part` names: their records and passes follow the others'.
  void add_guests();

  BatchPosition position;              // `first_row`: of this loader's part
  std::vector<std::uint64_t> records;  // of each example, in the order of the global batch
  std::vector<std::uint64_t> passes;
  std::vector<StreamedRecord> streamed;  // of each example, where the source is a stream; else empty
  std::vector<SlotShare> shares;         // one a replica

  MixingPart mixing_part;  // where the loader serves a part of the replicas; else empty

  SlotMark mark;

  // Given out to whoever has time for them; nothing is left of them when the batch is written.
  ClaimCounter rows_left;   // for compute: its examples
  ClaimCounter reads_left;  // for readers: the same, where they fetch the records
  ClaimCounter pairs_left;  // for compute: of the batch-level operation that is on

  std::atomic<std::int64_t> pending{0};  // examples not yet written, later pairs not yet mixed
  std::size_t mixing = 0;                // batch-level operations begun; changes only while nothing is pending
  int holders = 0;                       // replicas that have not given it back; by the ring's mutex
  std::atomic<int> out{0};               // batches that consumers have; back by the ring's mutex
  bool outlives_ring = false;            // whoever gives the last of them back frees it; by the ring's mutex

  std::optional<Failure> failure;  // complete in Written
  std::vector<BadRecord> bad;      // rows set aside; in order and complete in Written
  std::vector<BadRecord> warned;   // rows whose images were damaged without effect; the same
  // Rows whose images say that they are stored another way up.
  std::atomic<std::uint64_t> oriented{0};

  ChargedBytes pageable, pinned;  // charged for its memory

 private:
  SampleProgram::Rows guest_row(std::int64_t guest) const noexcept;
  void take_in(const BatchPosition& at);
  // Rows without an example become zero.
  void clear_rest(SlotShare& share);

  const BatchLayout* layout_;
  const DeviceConversion* conversion_;
  std::size_t fields_;
  mutable std::vector<std::byte> guest_rows_;  // one after another
  std::mutex failure_mutex_;
};

}  // namespace headrace
