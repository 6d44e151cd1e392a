// A plan's work on one record, compiled to a flat list of instructions that one loop runs: from the source's or a
// cache's bytes to the rows of a batch.
//
// Fields in progress are views, numbered; they and their bytes are in the thread's Scratch. A section of the list
// makes one sample: of the plan itself, or of a dataset that was decoded, mapped or cached before it was combined
// (a part). Its fields are consecutive views.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/pipeline/operations/machinery/label_check.h"
#include "headrace/pipeline/operations/machinery/memory_budget.h"
#include "headrace/pipeline/operations/machinery/step.h"
#include "headrace/pipeline/plan/plan.h"
#include "headrace/pipeline/record.h"
#include "headrace/pipeline/stats.h"

namespace headrace {

// A separately timed part of a program.
struct StageName {
  std::string name;
  StageKind kind = StageKind::kOperate;
};

// A sample that a cache holds; empty: none does.
struct FoundSample {
  std::span<const std::byte> bytes;
  std::size_t cache = 0;  // which of the plan's

  bool empty() const noexcept { return bytes.empty(); }
};

enum class InstructionKind : std::uint8_t {
  kCheckLabel,  // refuses a record whose label is none of its source's classes
  kView,        // views a field of the record
  kFind,        // looks for the sample in the section's caches, and continues after the one that has it
  kPart,        // runs the section of a part of zip()
  kSelect,      // runs the section of the part that the record is in
  kStep,        // runs a step on a field
  kKeep,        // copies a field to where the steps of other fields do not overwrite it
  kSampleStep,  // runs a step on several fields
  kAppend,      // appends a field to the section's sample
  kSample,      // completes that sample, views its fields, and keeps it in a cache if there is one
  kRow,         // copies a field to its row of the batch, or runs its last step there
};

struct Instruction {
  InstructionKind kind = InstructionKind::kView;
  bool takes_long = false;        // the probe is notified before it begins
  bool cached = false;            // of kSample: a cache keeps it
  std::uint8_t buffer = 0;        // of the scratch's two, for the step's result
  std::uint16_t field = 0;        // of the record, the section's sample or the batch
  std::uint16_t in = 0, out = 0;  // views; of kFind, kSampleStep and kSample, `out` is the sample's first field
  std::size_t count = 0;          // of caches, parts, or fields of the sample
  std::size_t index = 0;          // of SampleCode's labels, viewed fields, caches or parts: the first of `count`
  std::size_t bytes = 0;          // of a row, if its size does not vary
  std::unique_ptr<Step> step = {};
  std::unique_ptr<const SampleStep> sample_step = {};
  std::string name = {};       // of the step, for errors, statistics and the trace
  const char* span = nullptr;  // the name, kept by the trace
  std::size_t stage = 0;       // to which its cost counts
  std::size_t decode = 0;      // to which its decoding counts
};

struct SampleCode {
  // Instructions from `begin` to `end`, and the caches that they fill.
  struct Section {
    std::size_t begin = 0, end = 0, first_cache = 0, caches = 0;
  };
  struct Cache {
    std::shared_ptr<SampleCache> cache;
    std::uint64_t records = 0;  // of the source: a cache with all of them is warm
    std::size_t fields = 0;     // of a sample
    std::size_t next = 0;       // the instruction with which a sample found here continues
  };
  struct Part {
    ProcessedPart planned;
    Section section;
  };

  std::vector<Instruction> instructions;  // the parts' sections, then the plan's
  std::vector<LabelCheck> labels;
  Fields viewed;  // by kView
  std::vector<Cache> caches;
  std::vector<Part> parts;
  Section plan;               // the whole plan's
  Fields fields;              // of a sample afterwards
  std::uint64_t records = 0;  // of the source

  std::span<const Cache> caches_of(const Section& section) const noexcept {
    return std::span(caches).subspan(section.first_cache, section.caches);
  }
};

// Const except for the caches, which are thread-safe; shared by all threads.
class SampleProgram {
 public:
  // The destination of each field of a sample in its batch.
  using Rows = SampleRows;

  // Compiles a plan to rows of a batch. Binds its caches.
  // `decoded`: the field whose rows devices may decode.
  explicit SampleProgram(const StreamPlan& plan, std::optional<std::size_t> decoded = {});
  // Compiles `stages` alone, on the records or the combined parts of the plan, to samples for make_sample(). Binds
  // the parts' caches.
  SampleProgram(const StreamPlan& plan, std::span<const SampleStage> stages);

  // Returns the fields of a sample.
  const Fields& fields() const noexcept { return code_.fields; }
  // Returns the operations that draw random numbers for each record of a warm cache.
  std::span<const std::uint16_t> random_operations() const noexcept { return random_operations_; }

  // Keeps indexes of JPEGs of which windows are decoded, for repeated records. They are charged to the budget.
  // REQUIRES: called before the first record; `budget` outlives this.
  void keep_jpeg_indexes(MemoryBudget& budget);

  // Keeps the steps' names in the trace. REQUIRES: called before the first traced record.
  void name_spans(Trace& trace);

  // Returns whether a sample currently merits a separate task: it is decoded, resampled or passed to user code.
  // Samples in a warm cache are not made any more.
  bool is_slow() const noexcept { return is_slow(code_.plan); }
  // Returns whether a sample is its record, unchanged.
  bool does_nothing() const noexcept;
  // Returns the categories of a compute thread's time, in the order in which a record meets them: each step, then
  // everything else. StepContext::samples has one entry for each.
  const std::vector<StageName>& stages() const noexcept { return stages_; }
  // Returns whether every record is in the cache, so that the source need not be read.
  bool is_warm() const noexcept;
  // Returns whether finding a cached sample may wait for a file.
  bool cache_may_wait() const noexcept;

  // Returns the record's sample of the last cache that has it, possibly in `scratch`; empty if none has. Counts
  // hits and misses.
  FoundSample find_cached(std::uint64_t record, std::vector<std::byte>& scratch) const noexcept {
    return find(code_.plan.first_cache, code_.plan.caches, record, scratch);
  }
  void run_cached(const FoundSample& found, const StepContext& context, const Rows& rows) const;
  // Also stores the sample in the caches.
  void run_record(const RecordView& record, const StepContext& context, const Rows& rows) const;
  // Returns a record's sample, in the context's scratch. REQUIRES: compiled for samples.
  std::span<const FieldView> make_sample(const RecordView& record, const StepContext& context) const;

  // Returns whether all fields are only copied from the source's columns, which copy_rows() does.
  bool copies_columns() const noexcept { return !columns_.empty(); }
  // Copies the fields of `records` to consecutive rows, of which `first` is the first, without a call per record.
  // REQUIRES: copies_columns(); each record is below the source's number of records; the source exists.
  void copy_rows(std::span<const std::uint64_t> records, const Rows& first) const noexcept;

 private:
  // A record in progress.
  struct Work {
    const RecordView& record;
    const Rows& rows;
    std::size_t made = 0;  // samples in the scratch that are in use
    std::size_t used = 0;  // bytes of the next one
  };

  void name_stages();
  std::size_t after_caches() const noexcept;
  template <typename Use>
  void with_encoded_images(const Use& use);
  bool is_slow(const SampleCode::Section& section) const noexcept;
  FoundSample find(std::size_t first_cache, std::size_t caches, std::uint64_t record,
                   std::vector<std::byte>& scratch) const noexcept;

  // Run instructions. `number`: the record's in the section's caches.
  void run(std::size_t begin, std::size_t end, std::uint64_t number, const StepContext& context, Work& work) const;
  void run(const SampleCode::Part& part, std::uint64_t number, const StepContext& context, Work& work) const;
  void run_selected(const Instruction& at, std::uint64_t number, const StepContext& context, Work& work) const;
  // Returns the instruction before the next one.
  const Instruction* find(const Instruction& at, std::uint64_t number, Scratch& scratch, Work& work) const;
  void complete(const Instruction& at, std::uint64_t number, const StepContext& context, Work& work) const;

  SampleCode code_;
  std::vector<StageName> stages_;
  std::vector<std::uint16_t> random_operations_;
  std::vector<FieldColumn> columns_;  // empty unless all rows are copied from them
};

// Returns the steps of those of `stages` that concern the field, which becomes the field after them.
std::vector<NamedStep> compile_steps(Field& field, std::span<const SampleStage> stages, bool cached);

// Compiles the stages on what the plan's source or parts give; with `to_rows` the plan's caches and checks, too,
// and a batch's rows as the destination.
SampleCode compile_samples(const StreamPlan& plan, std::span<const SampleStage> stages, bool to_rows,
                           std::optional<std::size_t> decoded = {});

}  // namespace headrace
