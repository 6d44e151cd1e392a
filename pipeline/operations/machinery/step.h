// What flows between the steps of a compiled chain of operations, and what a step may use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
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
#include "headrace/pipeline/operations/kernels/stores.h"
#include "headrace/pipeline/operations/machinery/memory_budget.h"
#include "headrace/pipeline/operations/machinery/resampler.h"
#include "headrace/pipeline/record.h"

namespace headrace {

// Where each field of a sample goes in its batch.
using SampleRows = std::array<std::byte*, kMaxFields>;

// One field of one record on its way. The element type is known to the step that reads it.
struct FieldView {
  std::span<const std::byte> bytes;
  Shape shape;  // an encoded image: (bytes)
};

// An image of `stride` bytes a row with borders around it; the borders hold zeros or reflected pixels.
struct Canvas {
  std::vector<std::byte> bytes;
  std::int64_t height = 0, width = 0, pixel_bytes = 0, pad = 0;  // of the image whose borders it has
};

// What one record took in one stage of its program; the last stage's is what was left after its steps.
struct StageSample {
  std::uint64_t items = 0;  // 1 where it went through the stage
  std::uint64_t ns = 0;
};

// What there is to say of the images of one record that were decoded.
struct ImageNotes {
  std::string step = {};     // that decoded the one of `warning`
  std::string warning = {};  // what was wrong but changed no pixel; empty: nothing
  bool oriented = false;     // one of them is stored another way up than it is to be shown

  bool empty() const noexcept { return warning.empty() && !oriented; }
};

// A thread's own working memory. Buffers grow to the largest sample seen and stay; what they grow by is charged
// first.
struct Scratch {
  ImageDecoder decoder;
  Resampler resampler;
  Canvas canvas;
  std::vector<std::byte> decoded;                         // inside one step
  std::vector<std::byte> turned;                          // the same pixels the other way up
  std::vector<std::byte> results[2];                      // between steps, by turns
  std::array<std::vector<std::byte>, kMaxFields> fields;  // between operations on several fields
  std::vector<std::byte> made;                            // by such an operation
  std::vector<std::byte> sample;                          // a sample on its way to the cache
  std::vector<std::byte> read;                            // for Source::read()
  ImageNotes notes;                                       // since they were last taken away
  std::uint64_t decode_ns = 0;                            // spent in `decoder`
  std::uint64_t stamp_ns = 0;        // when the row that is timed was last looked at: a step began
  std::vector<StageSample> samples;  // of the row of a block that is timed; one a stage of the program
  ChargedBytes charged;              // for the buffers

  // Held by the buffers whose size is the samples'.
  std::size_t bytes() const noexcept;
  void free_buffers() noexcept;
  // The first `bytes` of one of the buffers, which grows to hold them: what it held is lost then.
  // Error(kOutOfMemory) where the budget does not allow it, before anything is allocated.
  std::span<std::byte> grow(std::vector<std::byte>& buffer, std::size_t bytes);
  // Charges what the buffers hold, and `beside` them for a while. Error(kOutOfMemory) as in grow().
  void charge(std::size_t beside = 0) {
    charged.hold(this->bytes() + beside, "a compute thread's working memory");
  }
};

// Told what a thread is about to do where that may take long; the watchdog reads it.
class Probe {
 public:
  virtual ~Probe() = default;
  // The calling thread starts this step on this record. `step` lives as long as the probe.
  virtual void begin(const std::string& step, std::uint64_t record) noexcept = 0;
  // Around a call into a function that is not ours and may never return. leave_user_code() may throw to end
  // the thread: nobody waits for it any more.
  virtual void enter_user_code() noexcept = 0;
  virtual void leave_user_code() = 0;
};

// Makes that call.
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

struct StepContext {
  std::uint64_t seed = 0;
  std::uint64_t pass = 0;
  std::uint64_t record = 0;
  Scratch* scratch = nullptr;
  Probe* probe = nullptr;
  StageSample* samples = nullptr;   // one a stage of the program; null: this record is not timed
  TraceRing* trace = nullptr;       // for records that are timed; null: nothing is traced
  std::uint64_t batch = 0;          // for the trace
  Stores stores = Stores::kCached;  // into the rows of the batch
  // Of the record that comes next: to be fetched beside the work on this one.
  std::span<const std::byte> ahead = {};

  Philox random(std::uint16_t operation) const noexcept {
    return Philox(
        {.seed = seed, .epoch = static_cast<std::uint32_t>(pass), .record = record, .operation = operation});
  }
};

// Where a step puts its result: a row of the batch, whose size is fixed, or a buffer that grows.
class StepOutput {
 public:
  explicit StepOutput(std::span<std::byte> row) : row_(row) {}
  // `buffer` is one of the scratch's.
  StepOutput(Scratch& scratch, std::vector<std::byte>& buffer) : scratch_(&scratch), buffer_(&buffer) {}

  // Room for a result of exactly this size; Error(kInternal) where the row has another.
  std::span<std::byte> take(std::size_t bytes);
  bool is_row() const noexcept { return buffer_ == nullptr; }

 private:
  std::span<std::byte> row_;
  Scratch* scratch_ = nullptr;
  std::vector<std::byte>* buffer_ = nullptr;
};

struct EncodedImages;

// One step of a compiled chain: what runs for each record. Const and shared by all threads.
class Step {
 public:
  virtual ~Step() = default;
  virtual FieldView run(const FieldView& in, const StepContext& context, StepOutput& output) const = 0;
  // It decodes, resamples or calls the user's code: a sample is worth a task of its own, and the probe is told
  // before it begins.
  virtual bool takes_long() const noexcept { return false; }
  // Where it decodes encoded images itself, and only in part; else null.
  virtual EncodedImages* encoded_images() noexcept { return nullptr; }
};

// An error in one step of a record's way. message() is "step: cause".
class StepError final : public Error {
 public:
  StepError(ErrorCode code, std::string step, std::string cause, std::string hint = {})
      : Error(code, step + ": " + cause, std::move(hint)), step_(std::move(step)), cause_(std::move(cause)) {}

  const std::string& step() const noexcept { return step_; }
  const std::string& cause() const noexcept { return cause_; }

 private:
  std::string step_, cause_;
};

// The steps that a chain of operations is compiled to, while it grows.
struct NamedStep {
  std::unique_ptr<Step> step;
  std::string name;
  bool takes_long = false;     // as the step says
  const char* span = nullptr;  // the name, kept by the trace
  std::size_t stage = 0;       // of the program's, that it counts as
  std::size_t decode = 0;      // that its decoding counts as
};

// An operation adds its step, or takes the last one away and adds one that does both.
class StepList {
 public:
  void add(std::unique_ptr<Step> step, std::string name) {
    const bool takes_long = step->takes_long();
    steps_.push_back({.step = std::move(step), .name = std::move(name), .takes_long = takes_long});
  }

  // The last step where it is of this class, else null.
  template <typename Wanted>
  Wanted* last() const noexcept {
    return steps_.empty() ? nullptr : dynamic_cast<Wanted*>(steps_.back().step.get());
  }
  // It does something else besides.
  void extend_last(const std::string& name) { steps_.back().name += " | " + name; }
  // Returns its name.
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
