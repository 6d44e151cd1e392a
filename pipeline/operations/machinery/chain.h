// The operations on one field, compiled: what runs for each record.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/trace.h"
#include "headrace/pipeline/operations/machinery/memory_budget.h"
#include "headrace/pipeline/operations/machinery/sample_stage.h"
#include "headrace/pipeline/operations/machinery/step.h"
#include "headrace/pipeline/stats.h"

namespace headrace {

// A separately timed part of a program.
struct StageName {
  std::string name;
  StageKind kind = StageKind::kOperate;
};

// Whether a chain runs the stages before or after a cache.
enum class ChainPlace { kBeforeCache, kAfterCache };

// Const and shared by all threads; a thread brings its Scratch in the context.
class Chain {
 public:
  // Compiles those of `stages` that concern `input`; output() is the field afterwards.
  Chain(const Field& input, std::span<const SampleStage> stages, ChainPlace place);

  const Field& output() const noexcept { return output_; }
  // Returns whether a sample deserves its own task: it is decoded, resampled or passed to user code.
  bool is_slow() const noexcept;

  bool does_nothing() const noexcept { return steps_.empty(); }

  // Keeps indexes of the JPEGs whose windows are decoded: of `records` records, each of which recurs unchanged.
  // REQUIRES: the budget outlives the chain.
  void keep_jpeg_indexes(std::uint64_t records, MemoryBudget& budget);
  // Treats all images as good (SourceInfo::images_checked).
  void trust_images();

  // Runs the chain into `row`. REQUIRES: `row` has exactly the result's size.
  void run_into(const FieldView& in, const StepContext& context, std::span<std::byte> row) const;
  // Runs it into scratch memory (valid until the next run), or returns `in` itself if there is nothing to do.
  FieldView run(const FieldView& in, const StepContext& context) const;

  // Adds a stage for each step and remembers its place in the list. Decoding is a separate stage, "decode", even
  // if it is done inside another step.
  void add_stages(std::vector<StageName>& stages);

  // Keeps the steps' names in the trace whose rings run() is given. REQUIRES: no traced run has started.
  void name_spans(Trace& trace);

 private:
  void add(const PlannedOperation& planned, ChainPlace place, StepList& steps);
  FieldView run_step(std::size_t index, const FieldView& in, const StepContext& context, StepOutput output) const;
  FieldView run_timed(const NamedStep& named, const FieldView& in, const StepContext& context,
                      StepOutput& output) const;
  static FieldView run_named(const NamedStep& named, const FieldView& in, const StepContext& context,
                             StepOutput& output);

  Field output_;
  std::vector<NamedStep> steps_;
};

// Returns an error with the step's name before its message. Keeps the code of an Error.
StepError name_step(const std::string& name, const std::exception& cause);

}  // namespace headrace
