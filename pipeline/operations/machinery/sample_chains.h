// A compiled run of a plan's stages on all fields of a sample: a chain for each field, cut where an operation
// needs several fields at once.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headrace/pipeline/operations/machinery/chain.h"

namespace headrace {

// Const and shared by all threads; a thread brings its Scratch in the context.
class SampleChains {
 public:
  // `input` are the fields of the samples it will process.
  SampleChains(const Fields& input, std::span<const SampleStage> stages, ChainPlace place);

  // Returns the fields afterwards.
  const Fields& output() const noexcept { return output_; }
  // Returns whether a sample takes long enough to deserve its own task.
  bool is_slow() const noexcept;
  bool does_nothing() const noexcept;
  // Returns whether no operation needs several fields: each can be run by itself.
  bool are_single() const noexcept { return joints_.empty(); }

  // See Chain for these four.
  void keep_jpeg_indexes(std::uint64_t records, MemoryBudget& budget);
  void trust_images();
  void add_stages(std::vector<StageName>& stages);
  void name_spans(Trace& trace);

  // Runs one field into its row. REQUIRES: are_single().
  void run_field(std::size_t field, const FieldView& in, const StepContext& context,
                 const SampleRows& rows) const {
    if (context.ragged != nullptr && context.ragged->entry_bytes[field] > 0) {
      return run_ragged(field, in, context, rows);
    }
    const std::size_t bytes = context.row_bytes != nullptr ? context.row_bytes[field] : row_bytes_[field];
    chains_[field].run_into(in, context, {rows[field], bytes});
  }
  // Runs all fields into their rows.
  void run_into(SampleView& sample, const StepContext& context, const SampleRows& rows) const;
  // Calls take(field number, its result) for each field in order; a result is valid only during the call.
  template <typename Take>
  void run(SampleView& sample, const StepContext& context, const Take& take) const {
    for (const Joint& joint : joints_) run_joint(joint, sample, context);
    for (std::size_t i = 0; i < chains_.size(); ++i) take(i, chains_[i].run(sample[i], context));
  }

 private:
  template <typename Use>
  void with_each_chain(const Use& use);
  // The chains of the fields up to an operation on several, and that operation.
  struct Joint {
    std::vector<Chain> before;
    std::unique_ptr<const SampleStep> step;
    std::string name;
    const char* span = nullptr;
    std::size_t stage = 0;
  };

  void run_ragged(std::size_t field, const FieldView& in, const StepContext& context,
                  const SampleRows& rows) const;
  void run_joint(const Joint& joint, SampleView& sample, const StepContext& context) const;
  static void run_step(const Joint& joint, SampleView& sample, const StepContext& context);

  Fields output_;
  std::vector<Joint> joints_;
  std::vector<Chain> chains_;  // after the last joint; one per field
  std::vector<std::size_t> row_bytes_;
};

}  // namespace headrace
