// The steps of compiled operations, the data between them, and their resources.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/rng.h"
#include "headrace/devices/base/shape.h"
#include "headrace/devices/base/trace.h"
#include "headrace/pipeline/decoders/image_decoder.h"
#include "headrace/pipeline/decoders/jpeg_scan/jpeg_window_writer.h"
#include "headrace/pipeline/operations/kernels/stores.h"
#include "headrace/pipeline/operations/machinery/drawn_ahead.h"
#include "headrace/pipeline/operations/machinery/memory_budget.h"
#include "headrace/pipeline/operations/machinery/resampler.h"
#include "headrace/pipeline/record.h"

namespace headrace {

// The destination of each field of a sample in its batch. No array of kMaxFields: its zeros would be written by a
// string store, which waits for the stores of the sample before, a quarter of a small image's time.
using SampleRows = PerField<std::byte*>;

// One field of one record in progress. The step that reads it knows the element type.
struct FieldView {
  std::span<const std::byte> bytes;
  Shape shape;  // an encoded image: (bytes)
};

// Returns a record's field as its first step sees it.
FieldView view_of(const Field& field, std::span<const std::byte> bytes) noexcept;

// An image of `stride` bytes a row with borders around it; the borders hold zeros or reflected pixels.
struct Canvas {
  std::vector<std::byte> bytes;
  std::int64_t height = 0, width = 0, pixel_bytes = 0, pad = 0;  // of the image inside the borders
};

// The cost of one record in one stage of its program; the last stage has the rest after its steps.
struct StageSample {
  std::uint64_t items = 0;  // 1 if it went through the stage
  std::uint64_t ns = 0;
  std::uint64_t decoded_bytes = 0;
};

// Notes on the decoded images of one record.
struct ImageNotes {
  std::string step = {};     // that decoded the image of `warning`
  std::string warning = {};  // a flaw that changed no pixel; empty: none
  bool oriented = false;     // one of them is stored another way up than it must be shown

  bool empty() const noexcept { return warning.empty() && !oriented; }
};

// A thread's own working memory. Buffers grow to the largest sample seen and stay; growth is charged first.
struct Scratch {
  ImageDecoder decoder;
  Resampler resampler;
  Canvas canvas;
  std::vector<std::byte> decoded;                         // inside one step
  std::vector<std::byte> turned;                          // the same pixels, turned
  std::vector<std::byte> unmirrored;                      // resized from them
  std::vector<std::byte> results[2];                      // between steps, alternating
  std::array<std::vector<std::byte>, kMaxFields> fields;  // between operations on several fields
  std::vector<std::byte> made;                            // by such an operation
  std::deque<std::vector<std::byte>> samples_made;        // whole samples: on their way to a cache, or of a part
  std::vector<FieldView> views{2 * kMaxFields + 2};       // of the fields of a sample in progress
  std::vector<std::byte> read;                            // for Source::read()
  std::vector<std::byte> stored_index;                    // for Source::jpeg_index()
  JpegIndex jpeg_index;                                   // read from it
  JpegWindowWriter window_writer;
  DrawnAhead drawn;                  // for the rows of a block
  ImageNotes notes;                  // since they were last taken
  std::uint64_t decode_ns = 0;       // spent in `decoder`
  std::uint64_t decoded_bytes = 0;   // of the whole images that it was given
  std::uint64_t stamp_ns = 0;        // last time stamp of the timed row: when a step began
  std::vector<StageSample> samples;  // of the timed row of a block; one per stage of the program
  ChargedBytes charged;              // for the buffers

  // Returns the bytes of the buffers whose size depends on the samples.
  std::size_t bytes() const noexcept;
  void free_buffers() noexcept;
  // Returns the first `bytes` of one of the buffers, grown to hold them; its old content is lost. Throws
  // Error(kOutOfMemory) if the budget does not allow it, before anything is allocated.
  std::span<std::byte> grow(std::vector<std::byte>& buffer, std::size_t bytes);
  // Charges the buffers, and temporarily `beside` bytes more. Throws Error(kOutOfMemory) as grow() does.
  void charge(std::size_t beside = 0) {
    charged.hold(this->bytes() + beside, "a compute thread's working memory");
  }
};

// Notified of what a thread is about to do if that may take long; read by the watchdog.
class Probe {
 public:
  virtual ~Probe() = default;
  // Notes that the calling thread starts this step on this record. `step` must live as long as the probe.
  virtual void begin(const std::string& step, std::uint64_t record) noexcept = 0;
  // Called around user code, which may never return. leave_user_code() may throw to end the thread if it was
  // abandoned in the meantime.
  virtual void enter_user_code() noexcept = 0;
  virtual void leave_user_code() = 0;
};

// Calls user code between the two.
template <typename Call>
void run_user_code(Probe& probe, const Call& call) {
  probe.enter_user_code();
  try {
    call();
  } catch (...) {
    probe.leave_user_code();
    throw;
  }
  probe.leave_user_code();
}

// The fields of varying length whose entries a batch holds without padding.
struct RaggedRows {
  std::array<std::size_t, kMaxFields> entry_bytes{};  // along the first extent; 0: the field has one length
  std::array<std::size_t, kMaxFields> lengths{};  // the field, i64, that receives the sample's number of entries
};

struct StepContext {
  std::uint64_t seed = 0;
  std::uint64_t pass = 0;
  std::uint64_t record = 0;
  Scratch* scratch = nullptr;
  Probe* probe = nullptr;
  StageSample* samples = nullptr;   // one per stage of the program; null: this record is not timed
  TraceRing* trace = nullptr;       // for timed records; null: nothing is traced
  std::uint64_t batch = 0;          // for the trace
  Stores stores = Stores::kCached;  // into the rows of the batch
  // Bytes of each field's row in the batch; null: as the program's fields have them.
  const std::size_t* row_bytes = nullptr;
  const RaggedRows* ragged = nullptr;      // of a ragged batch, whose `row_bytes` are maxima; else null
  const std::uint64_t* numbers = nullptr;  // of enumerate() stages, one each; null: there are none
  // The next record's bytes, to be prefetched during the work on this one.
  std::span<const std::byte> ahead = {};
  // Where the row's description and what does not fit into it go, if the device decodes it, and the field whose
  // rows it may decode; JpegDestination::window null: the host decodes.
  JpegDestination jpeg = {};
  std::size_t jpeg_field = 0;
  const DrawnAhead* drawn = nullptr;  // random numbers of this record and those around it; null: none
  std::size_t drawn_row = 0;          // of this record

  Philox random(std::uint16_t operation) const noexcept { return random(operation, pass); }
  // The random numbers that the operation has for this record in another pass.
  Philox random(std::uint16_t operation, std::uint64_t in_pass) const noexcept {
    const RandomKey key{
        .seed = seed, .epoch = static_cast<std::uint32_t>(in_pass), .record = record, .operation = operation};
    return drawn == nullptr ? Philox(key) : drawn->random(key, drawn_row);
  }
};

// The destination of a step's result: a row of the batch, of fixed size, or a buffer that grows.
class StepOutput {
 public:
  // `jpeg`: as StepContext::jpeg, of this row; null: it must hold the result itself.
  explicit StepOutput(std::span<std::byte> row, const JpegDestination* jpeg = nullptr) : row_(row), jpeg_(jpeg) {}
  // REQUIRES: `buffer` is one of the scratch's.
  StepOutput(Scratch& scratch, std::vector<std::byte>& buffer) : scratch_(&scratch), buffer_(&buffer) {}

  // Returns room for a result of exactly this size. Throws Error(kInternal) if the row's size differs.
  std::span<std::byte> take(std::size_t bytes);
  bool is_row() const noexcept { return buffer_ == nullptr; }
  // Returns where to leave a JPEG to the device; null: nowhere.
  const JpegDestination* jpeg() const noexcept { return jpeg_; }

 private:
  std::span<std::byte> row_;
  const JpegDestination* jpeg_ = nullptr;
  Scratch* scratch_ = nullptr;
  std::vector<std::byte>* buffer_ = nullptr;
};

struct EncodedImages;

// An operation on one field, compiled; run for each record. Const and shared by all threads.
class Step {
 public:
  virtual ~Step() = default;
  virtual FieldView run(const FieldView& in, const StepContext& context, StepOutput& output) const = 0;
  // Returns whether it decodes, resamples or calls user code: a sample then deserves its own task, and the probe
  // is notified before it begins.
  virtual bool takes_long() const noexcept { return false; }
  // Returns the images if the step itself decodes encoded ones, and only in part; otherwise null.
  virtual EncodedImages* encoded_images() noexcept { return nullptr; }
};

// The fields of one sample in progress, in the order of its Fields.
using SampleView = std::span<FieldView>;

// An operation on several fields, compiled. Const and shared by all threads.
class SampleStep {
 public:
  virtual ~SampleStep() = default;
  // Replaces the fields it changes with scratch memory, and sets those that it adds. `sample` has room for these.
  virtual void run(SampleView sample, const StepContext& context) const = 0;
};

// A batch-level operation on the rows of two examples, compiled. Const and thread-safe for different pairs.
class PairMixer {
 public:
  virtual ~PairMixer() = default;
  virtual void mix(const SampleRows& first, const SampleRows& second, Philox& random) const = 0;
};

// An error in one step of a record. message() is "step: cause".
class StepError final : public Error {
 public:
  StepError(ErrorCode code, std::string step, std::string cause, std::string hint = {})
      : Error(code, step + ": " + cause, std::move(hint)), step_(std::move(step)), cause_(std::move(cause)) {}

  const std::string& step() const noexcept { return step_; }
  const std::string& cause() const noexcept { return cause_; }

 private:
  std::string step_, cause_;
};

// Returns an error with the step's name before its message. Keeps the code of an Error.
StepError name_step(const std::string& name, const std::exception& cause);

// A step of one field's operations, compiled.
struct NamedStep {
  std::unique_ptr<Step> step;
  std::string name;
  bool takes_long = false;  // as the step says
};

// The steps so far. An operation adds its step, or replaces the last one with one that does both.
class StepList {
 public:
  void add(std::unique_ptr<Step> step, std::string name) {
    const bool takes_long = step->takes_long();
    steps_.push_back({.step = std::move(step), .name = std::move(name), .takes_long = takes_long});
  }

  // Returns the last step if it is of this class, otherwise null.
  template <typename Wanted>
  Wanted* last() const noexcept {
    return steps_.empty() ? nullptr : dynamic_cast<Wanted*>(steps_.back().step.get());
  }
  // Notes in its name that the last step does something else, too.
  void extend_last(const std::string& name) { steps_.back().name += " | " + name; }
  // Removes the last step and returns its name.
  std::string remove_last() {
    std::string name = std::move(steps_.back().name);
    steps_.pop_back();
    return name;
  }

  std::vector<NamedStep> take() { return std::move(steps_); }

 private:
  std::vector<NamedStep> steps_;
};

}  // namespace headrace
