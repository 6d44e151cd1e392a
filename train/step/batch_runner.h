// Runs a program on all shards of a global batch, on their replicas, a batch at a time: brings each shard to its
// fixed place, launches, brings the sums back. Keeps a few batches in flight and looks at each when it is done.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "headrace/pipeline/batch.h"
#include "headrace/train/fit_options.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/step/batch_feed.h"
#include "headrace/train/step/objective.h"
#include "headrace/train/step/program.h"
#include "headrace/train/step/shard_arenas.h"
#include "headrace/train/step/shards.h"
#include "headrace/train/step/step_clock.h"
#include "headrace/train/step/step_slot.h"
#include "headrace/train/trainer.h"

namespace headrace {

struct BatchRunnerOptions {
  // But for `activations` and `variables_beside`, which the devices decide, and `leaves_out_softmax`, which
  // follows from the loss.
  ProgramOptions program;
  std::optional<Loss> loss = std::nullopt;  // nothing: predicting
  std::vector<Metric> metrics = {};         // with a loss
  int in_flight = 3;
  NanPolicy nan = NanPolicy::kStop;
  std::shared_ptr<Trace> trace = {};
  bool averaged_weights = false;  // the optimizer's average in the place of the parameters
  int virtual_shards = 0;         // as Shards has them; the batches are a loader's that serves as many
  // One a replica, of virtual shards in training; outlives the runner.
  const std::vector<ShardArenas>* shard_arenas = nullptr;
};

// One thread. After an error nothing more can be submitted.
class BatchRunner {
 public:
  // ConfigError where the data's fields do not fit the net, the loss or the metrics, and for averaged weights
  // where there are none.
  BatchRunner(ModelState& model, const Fields& fields, const BatchRunnerOptions& options);
  ~BatchRunner();  // waits for what was submitted
  BatchRunner(const BatchRunner&) = delete;
  BatchRunner& operator=(const BatchRunner&) = delete;

  const Program& program() const noexcept { return program_; }
  const Shards& shards() const noexcept { return shards_; }
  const Objective* objective() const noexcept { return objective_ ? &*objective_ : nullptr; }
  ProgramBinding binding(int shard) const;
  const float* group_scale(int shard) const;  // in device memory
  // Submits loss, metrics and, unless there are none, the results' gradients of the shard in place; may be
  // captured.
  void submit_objective(int shard, std::vector<TensorView> results, std::vector<TensorView> gradients) const;

  // What is submitted of a batch once everything is in place: in each shard's stream, and, behind all shards of a
  // replica, in the replica's.
  struct Work {
    std::function<void(int shard)> compute;
    std::function<void(int replica)> finish = [](int) {};
  };
  // Every shard of the next global batch; nothing at the end of the data. Waits for it.
  std::optional<GlobalBatch> take(Loader& loader);
  // Submits one global batch, the one taken last. Waits while `in_flight` batches are unfinished.
  void submit(GlobalBatch batches, const StepScalars& common, const Work& work);

  // What submit() and the work do on a device, with a batch of no examples and at rate 0: what a device does when
  // a kernel is first used is then done. Waits. What the work changes, its caller puts right.
  void warm_up(const Work& work);

  // Called once for each batch, in order, when it is done on all replicas.
  std::function<void(const StepSlot&)> on_done;

  // The batch that was submitted last, and its labels in a shard's device memory, (rows, ...): of a field that
  // loss or metrics use. ConfigError for another field, and without a batch.
  const StepSlot& last() const;
  TensorView labels(int shard, const std::string& field) const;

  // What was submitted to the replica's stream since its last work belongs to that batch, too.
  void extend(int replica);
  void drain();
  // Over all shards since the last reset, as of the last batch known to be done.
  // Metrics of tables are among them after read_tables(), until the next batch is done.
  MetricSums sums() const { return objective_ ? objective_->sums(seen_) : MetricSums{}; }
  std::vector<MetricValue> metrics() const {
    return objective_ ? objective_->values(seen_) : std::vector<MetricValue>{};
  }
  // Waits for what was submitted.
  void read_tables();
  void reset_sums();  // drains, and restarts the times

  // What was counted since the last reset, as it lies in the memory of a replica's shards, between two batches:
  // `saved_sets()` a replica, of `saved_set_bytes()` each. `into` is written in the order of the replica's stream.
  int saved_sets() const noexcept { return shards_.per_replica(); }
  std::size_t saved_set_bytes() const noexcept { return totals_bytes() + tables_bytes(); }
  void save_totals(int replica, std::byte* into) const;
  // After reset_sums(): counting goes on from what was saved of each shard of the world; where there are not as
  // many, the first one gets their sum. ConfigError for totals of another loss or other metrics.
  void restore_totals(const std::vector<std::vector<std::byte>>& saved);
  // Since the last reset.
  const StepTimes& times() const noexcept { return clock_.times; }
  const std::vector<StepTimes>& replica_times() const noexcept { return clock_.replica_times; }
  // Time the calling thread has waited in here, for input or for devices.
  std::uint64_t waited_ns() const noexcept { return waited_ns_; }

 private:
  // One shard's device memory.
  struct Memory {
    Buffer block;                    // StepScalars, group scale, totals, labels, tables
    Buffer scratch, pinned_scratch;  // the objective's
  };

  static void wait_for(Stream& stream) noexcept;
  void make_groups();
  void allocate();
  // No examples, rates of 0, no sums.
  void blank(int shard);
  StepSlot make_slot() const;
  float group_scale_of(const Batch& batch, const StepScalars& common) const;
  void describe(const Batch& batch, const StepScalars& common, ShardSlot& slot);
  void add_labels(int shard, const Batch& batch);
  void bring_in(int shard, const Batch& batch, ShardSlot& slot);
  // Calls function(shard) for the replica's.
  template <typename Function>
  void for_shards_of(int replica, const Function& function) const {
    for (int shard = shards_.first_of(replica); shard < shards_.first_of(replica + 1); ++shard) function(shard);
  }
  // In the replica's stream.
  void bring_back(int shard, const ShardSlot& slot);
  void collect(std::size_t index);
  void write_totals(int shard, const std::byte* from);
  // The place in the ring `steps` after this one.
  std::size_t after(std::size_t index, std::size_t steps) const noexcept {
    return (index + steps) % slots_.size();
  }
  Stream& stream(int shard) const { return shards_.stream(shard); }
  std::size_t result_bytes() const;
  std::byte* block(int shard) const;
  std::byte* totals(int shard) const;  // within it
  std::byte* tables(int shard) const;
  // Within a block.
  std::size_t totals_bytes() const noexcept;
  std::size_t labels_at() const noexcept;
  std::size_t tables_at() const noexcept;
  std::size_t tables_bytes() const noexcept { return objective_ ? objective_->tables_bytes() : 0; }
  // Throws where a loss is no number or did not count its examples.
  void count(const StepSlot& slot);

  ModelState& model_;
  BatchRunnerOptions options_;
  Shards shards_;
  std::optional<Objective> objective_;  // none: predicting
  Program program_;
  BatchFeed feed_;
  std::vector<ReplicaGroup> groups_;  // by local replica, in training with several of the world
  std::vector<Buffer> workspaces_;    // one a lane
  std::vector<Memory> memory_;        // one a shard
  StepClock clock_;
  std::vector<MemoryCopy> copies_;  // that are about to be submitted
  std::vector<StepSlot> slots_;     // one more than are in flight: the times need the one before the oldest
  std::size_t next_ = 0;
  bool submitted_ = false;                     // a batch, ever
  bool restarted_ = true;                      // since the last batch was submitted
  std::uint64_t asked_ns_ = 0, taken_ns_ = 0;  // of the last take(), on the host
  std::uint64_t waited_ns_ = 0;
  ObjectiveTotals seen_;
  std::int64_t examples_ = 0;  // of the batches in seen_
  bool failed_ = false;
};

}  // namespace headrace
