// A slot of the ring, in which batches are assembled: memory on every replica, allocated once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
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

// A record of a stream, kept by its batch's slot because it cannot be read again.
struct StreamedRecord {
  std::vector<std::byte> bytes;
  std::uint64_t number = 0;  // of the record
  RecordView view;           // into `bytes`
  std::exception_ptr error;  // why there is no record; else null

  // Throws its error if there is one.
  const RecordView& get() const {
    if (error != nullptr) std::rethrow_exception(error);
    return view;
  }
};

// A slot's contents for one replica.
struct SlotShare {
  Device* where = nullptr;          // the device whose memory holds the batch
  Buffer host;                      // rows are written here: the batch itself, or pinned memory
  Buffer device;                    // receives the part of `host` that is sent; empty if none is
  Buffer results;                   // of the fields that the device converts; else empty
  std::vector<TensorView> tensors;  // of the batch
  std::unique_ptr<Event> ready;     // recorded by the copy; never recorded if there is none
  std::unique_ptr<Event> fence;     // recorded by the consumer when it returns the batch
  bool fenced = false;              // whether `fence` was recorded at the last return
  bool released = true;             // by the ring's mutex
  std::int64_t first = 0;           // zero-based number of its first example
  std::int64_t rows = 0;            // real examples
  std::int64_t used_rows = 0;       // rows that are not known to be zero
};

class Slot {
 public:
  // `fields` and `layout` describe the rows that the host writes, `shapes` those of each bucket's batches: none of
  // them is larger than `layout`, and `fields` counts only if there are none. `conversion` is null if the devices
  // convert nothing. `ragged` are the plan's fields of varying length.
  Slot(DeviceGroup& devices, const Fields& fields, const BatchLayout& layout, const DeviceConversion* conversion,
       std::span<const BatchShape> shapes = {}, std::span<const RaggedTensor> ragged = {});

  // The memory of a slot: the host's, and that of each device with its own.
  struct Bytes {
    std::uint64_t pageable = 0;
    std::uint64_t pinned = 0;
    std::uint64_t on_device = 0;
  };
  static Bytes bytes(DeviceGroup& devices, const BatchLayout& layout, const DeviceConversion* conversion);

  // Returns whether its memory may be rewritten: nobody holds it, and the devices have finished with it. Throws as
  // their events do. Called by the assembler.
  bool is_passed() const;

  // Frees the memory on devices and the rows, and returns their bytes to the budgets: needs nothing outside
  // afterwards.
  void free_memory() noexcept;

  // Returns the layout of its batch.
  const BatchLayout& layout() const noexcept { return *layout_; }
  // Returns the bytes of each field's row; null if all batches are alike.
  const std::size_t* row_bytes() const noexcept { return shapes_.empty() ? nullptr : layout_->row_bytes.data(); }

  // Begins the next batch: `records` and `passes` are filled in afterwards. Zeroes rows without an example.
  // REQUIRES: state Writing, also for begin_failed() and replay().
  void begin(const BatchPosition& at);
  // Begins a batch that is not made. Leaves the memory alone: a device that failed may still be copying from it.
  void begin_failed(const BatchPosition& at, Failure why);
  // Hands out its contents again, as another batch.
  void replay(const BatchPosition& at);
  SampleProgram::Rows rows(int replica, std::int64_t local_row) const noexcept;
  // Returns where an example's window goes if the device decodes it, without the row; nowhere if devices decode
  // none, or not this one.
  JpegDestination jpeg_of(std::int64_t example) const noexcept;
  // Returns the rows of an example, on whichever replica it is.
  SampleProgram::Rows rows_of(std::int64_t example) const noexcept;
  // Remembers the failure of the smallest row. Thread-safe.
  void fail(Failure failure);
  // Remembers a row that could not be written; the batch continues without it. Thread-safe.
  void set_aside(BadRecord bad);
  // Remembers a row written from an image whose damage changed no pixel. Thread-safe.
  void warn(BadRecord warned);
  // Draws the windows that the devices need for each row; does nothing if they convert nothing. REQUIRES: the
  // rows' records are known.
  void draw_windows(std::uint64_t seed);
  // Tells the devices the place of each row's sample. REQUIRES: all its records have places.
  void pick(std::span<const std::int32_t> places);
  // Moves the remaining rows up over those that were set aside, and counts only them. REQUIRES: all rows were
  // written, and `bad` is in order of rows.
  void close_gaps();
  // Moves the entries of ragged fields together, and makes offsets of their lengths. REQUIRES: all rows were
  // written, and gaps closed.
  void compact();

  // Returns the number of examples of this loader's replicas, without the guests after them.
  std::int64_t examples() const noexcept { return static_cast<std::int64_t>(records.size()) - guests(); }
  std::int64_t guests() const noexcept { return static_cast<std::int64_t>(mixing_part.guests().size()); }
  // Returns the number of rows to write: those examples and the guests.
  std::int64_t rows_to_write() const noexcept { return static_cast<std::int64_t>(records.size()); }
  // Returns the numbers of an example; null if there are none. REQUIRES: no gap was closed.
  const std::uint64_t* numbers_of(std::size_t example) const noexcept {
    return numbers.empty() ? nullptr : numbers.data() + example * (numbers.size() / records.size());
  }
  // Adds the guests of `mixing_part`: their records and passes follow the others.
  void add_guests();

  BatchPosition position;              // its `first_row` is this loader's
  std::vector<std::uint64_t> records;  // of each example, in the order of the global batch
  std::vector<std::uint64_t> passes;
  std::vector<std::uint64_t> numbers;    // of each example in turn, those of the plan's enumerate() stages
  std::vector<StreamedRecord> streamed;  // of each example; empty unless the source is a stream
  std::vector<SlotShare> shares;         // one per replica

  MixingPart mixing_part;  // empty unless the loader serves a part of the replicas

  SlotMark mark;

  // Claimed by any thread that has time; none is left when the batch is written.
  ClaimCounter rows_left;   // for compute: its examples
  ClaimCounter reads_left;  // for readers: its examples, if they fetch the records
  ClaimCounter pairs_left;  // for compute: of the current batch-level operation

  std::atomic<std::int64_t> pending{0};  // examples not yet written, later pairs not yet mixed
  std::size_t mixing = 0;                // batch-level operations begun; changes only while nothing is pending
  int holders = 0;                       // replicas that have not returned it; by the ring's mutex
  std::atomic<int> out{0};               // batches that consumers hold; decremented by the ring's mutex
  bool outlives_ring = false;            // the return of the last batch frees it; by the ring's mutex

  std::optional<Failure> failure;  // complete in Written
  std::vector<BadRecord> bad;      // rows set aside; in order and complete in Written
  std::vector<BadRecord> warned;   // rows whose images were damaged without effect; likewise
  // Rows whose images give another orientation.
  std::atomic<std::uint64_t> oriented{0};

  ChargedBytes pageable, pinned;  // charged for its memory

 private:
  // Returns the replica of an example.
  std::size_t replica_of(std::int64_t example) const noexcept;
  SampleProgram::Rows guest_row(std::int64_t guest) const noexcept;
  void take_in(const BatchPosition& at);
  // Lays out the memory for the batches of a bucket.
  void reshape(const BatchShape& shape);
  // Zeroes rows without an example.
  void clear_rest(SlotShare& share);
  void compact(SlotShare& share, const RaggedTensor& ragged) const;

  const BatchLayout* layout_;
  const DeviceConversion* conversion_;
  std::span<const BatchShape> shapes_;  // of each bucket; empty: all batches are alike
  std::span<const RaggedTensor> ragged_;
  std::size_t fields_;
  mutable std::vector<std::byte> guest_rows_;  // one after another
  std::mutex failure_mutex_;
};

}  // namespace headrace
