// NanPolicy::kTrace: finds the operation of a batch whose result first held a NaN or an infinity.
#pragma once

#include <string>
#include <vector>

#include "headrace/train/step/number_checks.h"
#include "headrace/train/step/training_step.h"

namespace headrace {

// Watches the batches that a training step computes. REQUIRES: a batch is checked before the next one is
// submitted, and before its gradients are summed.
class NanTrace {
 public:
  NanTrace(ModelState& model, TrainingStep& step);

  // Submits copies of what the shard needs to be run again. REQUIRES: its batch is in place.
  void keep_inputs(int shard) const;
  // Waits for the batch. If its loss or a gradient is not finite, runs it again and checks every operation's
  // operands and results: throws DataError if a record's input or label is the cause, else Error.
  void check(const LearningPhase& phase);
  // Waits for the update after `step` others. Throws Error naming the first variable that is no longer finite.
  void check_update(std::uint64_t step) const;

 private:
  bool finite(int shard) const;
  void submit_again(int shard, const LearningPhase& phase, NumberProbe& probe) const;
  ProgramWatch watch(int shard, NumberProbe& probe) const;
  void look_at_variables(const LayerContext& call, bool gradients, NumberProbe& probe) const;
  // Returns the names of the terms that are true, or of all if `terms` is empty.
  std::string loss_name(const std::vector<bool>& terms) const;
  // Throws Error if a loss is the cause.
  void name_the_loss() const;
  [[noreturn]] void name_the_first(const std::vector<NumberProbe>& probes) const;
  std::int64_t real_elements(int shard, const TensorView& rows) const;

  ModelState& model_;
  TrainingStep& step_;
  std::vector<int> inputs_;                // layers
  std::vector<std::vector<Buffer>> kept_;  // by shard and input: the input's values
  const StepSlot* last_ = nullptr;         // the last batch that is done
};

}  // namespace headrace
