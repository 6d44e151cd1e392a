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

// A part of a program that is timed by itself.
struct StageName {
  std::string name;
  StageKind kind = StageKind::kOperate;
};

// What the stages before and after a cache do to one field.
enum class ChainPlace { kBeforeCache, kAfterCache };

// Const and shared by all threads; a thread brings its Scratch in the context.
class Chain {
 public:
  // Compiles those of `stages` that concern `input`; output() is the field afterwards.
  Chain(const Field& input, std::span<const SampleStage> stages, ChainPlace place);

  const Field& output() const noexcept { return output_; }
  // A sample takes long enough to be worth a task of its own: it is decoded, resampled or the user's.
  bool is_slow() const noexcept;

  bool does_nothing() const noexcept { return steps_.empty(); }

  // Keeps indexes of the JPEGs of which windows are decoded: of so many records, each again and again the same.
  // The budget must outlive the chain.
  void keep_jpeg_indexes(std::uint64_t records, MemoryBudget& budget);

  // Into `row`, which has exactly the result's size.
  void run_into(const FieldView& in, const StepContext& context, std::span<std::byte> row) const;
  // Into memory of the scratch (valid until the next run), or `in` itself where there is nothing to do.
  FieldView run(const FieldView& in, const StepContext& context) const;

  // Adds a stage for each step and remembers its place in the list. Decoding is a stage of its own, "decode", even
  // where it is done inside another step.
  void add_stages(std::vector<StageName>& stages);

  // Keeps the steps' names in the trace whose rings run() is given. Before the first run that is traced.
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

// An error of a step, with the step's name in front of its message. Keeps the code of an Error.
StepError name_step(const std::string& name, const std::exception& cause);

}  // namespace headrace
