// Runs a program on all replicas, a global batch at a time: brings the batch to its fixed place, launches, brings
// the sums back. Keeps a few batches in flight and looks at each when it is done.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "headrace/pipeline/batch.h"
#include "headrace/train/engine/model_state.h"
#include "headrace/train/engine/program.h"
#include "headrace/train/engine/step_slot.h"
#include "headrace/train/fit_options.h"
#include "headrace/train/trainer.h"

namespace headrace {

struct BatchRunnerOptions {
  ProgramOptions program;
  std::optional<Loss> loss = std::nullopt;  // nothing: predicting
  int in_flight = 3;
  NanPolicy nan = NanPolicy::kStop;
};

// One thread. After an error nothing more can be submitted.
class BatchRunner {
 public:
  // ConfigError where the data's fields do not fit the net.
  BatchRunner(ModelState& model, const Fields& fields, const BatchRunnerOptions& options);
  ~BatchRunner();  // waits for what was submitted
  BatchRunner(const BatchRunner&) = delete;
  BatchRunner& operator=(const BatchRunner&) = delete;

  const Program& program() const noexcept { return program_; }
  ProgramBinding binding(int replica) const;
  TensorView labels(int replica) const;
  MetricSums* sums(int replica) const;
  float* group_scale(int replica) const;  // in device memory

  // Submits one global batch; `body` submits the step of a replica, everything being in place. Waits while
  // `in_flight` batches are unfinished.
  using Body = std::function<void(int replica, const ReplicaSlot& slot)>;
  void submit(GlobalBatch batches, const StepScalars& common, const Body& body);

  // Called once for each batch, in order, when it is done on all replicas.
  std::function<void(const StepSlot&)> on_done;

  bool idle() const;  // everything submitted has finished
  void drain();
  // Over all replicas since the last reset, as of the last batch known to be done.
  const MetricSums& sums() const noexcept { return seen_; }
  void reset_sums();  // drains

 private:
  // One replica's device memory.
  struct Memory {
    Buffer workspace;
    Buffer block;         // StepScalars, MetricSums, group scale, labels
    Buffer input_scales;  // for u8 inputs: 1/255 ..., then 0 ...
  };

  struct Input {
    int layer = 0;
    std::string field;
    DType dtype = DType::kF32;
  };

  void check_inputs(const Fields& fields);
  void check_labels(const Fields& fields) const;
  void allocate();
  void fill_input_scales();
  StepSlot make_slot() const;
  void upload(int replica, const Batch& batch, const ReplicaSlot& slot);
  void load_input(int replica, const Input& input, const TensorView& from);
  void collect(StepSlot& slot);
  [[noreturn]] void fail(const StepSlot& slot);
  void check_numbers(const StepSlot& slot, int replica) const;
  Stream& stream(int replica) const;

  ModelState& model_;
  BatchRunnerOptions options_;
  Program program_;
  std::vector<Input> inputs_;
  std::int64_t largest_u8_ = 0;  // elements of an example
  std::vector<Memory> memory_;
  std::vector<StepSlot> slots_;
  std::size_t next_ = 0;
  MetricSums seen_;
  bool failed_ = false;
};

}  // namespace headrace
