// A program and its objective on every shard of a global batch, with the device memory that each shard works in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/base/trace.h"
#include "headrace/train/fit_options.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/step/objective.h"
#include "headrace/train/step/program.h"
#include "headrace/train/step/shards.h"
#include "headrace/train/strategy.h"

namespace headrace {

// Selects what is computed from each batch, and how many batches are in flight.
struct BatchQueueOptions {
  // Without `activations` and `variables_beside`, which the devices decide, and `leaves_out_softmax`, which the
  // loss decides.
  ProgramOptions program;
  std::optional<Loss> loss = std::nullopt;  // none: predicting
  std::vector<Metric> metrics = {};         // REQUIRES: a loss
  int in_flight = 0;                        // as in TrainerOptions
  int burst = 1;                            // the loader's
  NanPolicy nan = NanPolicy::kStop;
  std::shared_ptr<Trace> trace = {};
  bool averaged_weights = false;  // reads the optimizer's average instead of the parameters
  int virtual_shards = 0;         // as in Shards; the loader serves as many
  // One per replica, for training with virtual shards. REQUIRES: outlives the queue.
  const std::vector<ShardArenas>* shard_arenas = nullptr;
};

constexpr std::size_t kCacheLine = 64;
constexpr std::size_t whole_lines(std::size_t bytes) { return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine; }

// Byte offsets within a shard's block, of parts that begin on a cache line each. The device and the pinned memory
// of each batch in flight share this layout: group scale and scalars are copied to the device together; which work
// failed (the end of the scalars), totals and class numbers, the leading labels, are copied back together. Tables
// are on the device only.
struct BlockLayout {
  static constexpr std::size_t kGroupScale = 0;
  static constexpr std::size_t kScalars = kCacheLine;
  static constexpr std::size_t kCollectiveFailed = kScalars + offsetof(StepScalars, collective_failed);
  static constexpr std::size_t kWorkFailed = kScalars + offsetof(StepScalars, work_failed);
  static constexpr std::size_t kTotals = kScalars + whole_lines(sizeof(StepScalars));

  // Without an objective there is room for one MetricSums.
  explicit BlockLayout(const Objective* objective);

  std::size_t totals_bytes, tables_bytes;
  std::size_t labels, tables, bytes;  // where labels, tables and the block end begin
};

class MirroredProgram {
 public:
  // Throws ConfigError if the data's fields do not fit the loss or the metrics, or if averaged weights are
  // requested but not kept.
  MirroredProgram(ModelState& model, const Fields& fields, const BatchQueueOptions& options);
  MirroredProgram(const MirroredProgram&) = delete;
  MirroredProgram& operator=(const MirroredProgram&) = delete;

  const Program& program() const noexcept { return program_; }
  const Shards& shards() const noexcept { return shards_; }
  // Returns null when predicting.
  const Objective* objective() const noexcept { return objective_ ? &*objective_ : nullptr; }
  const BlockLayout& layout() const noexcept { return layout_; }

  ProgramBinding binding(int shard) const;
  // Call Program's functions with the shard's binding.
  TensorView value(int shard, int layer) const { return program_.value(binding(shard), layer); }
  std::vector<TensorView> results(int shard) const { return program_.results(binding(shard)); }
  std::vector<TensorView> result_gradients(int shard) const { return program_.result_gradients(binding(shard)); }
  void forward(int shard, const ProgramWatch& watch) const { program_.forward(binding(shard), watch); }
  // Submits the backward pass, gradients of weights to the stream that `streams` has for them.
  void backward(int shard, const Program::Needed& needed, const ReplicaStreams& streams,
                const std::function<void(std::int64_t)>& filled, const ProgramWatch& watch) const;
  // Submits loss and metrics of the batch in place and, unless `gradients` is empty, the gradients of the results.
  // May be captured. REQUIRES: an objective.
  void submit_objective(int shard, std::vector<TensorView> results, std::vector<TensorView> gradients) const;

  // Returns the shard's device memory.
  std::byte* block(int shard) const { return memory_[static_cast<std::size_t>(shard)].block.data(); }
  std::byte* totals(int shard) const { return block(shard) + BlockLayout::kTotals; }
  std::byte* tables(int shard) const { return block(shard) + layout_.tables; }
  const float* group_scale(int shard) const;
  // Returns a label field that loss or metrics use, (rows, ...). Throws ConfigError for another field.
  TensorView labels(int shard, const std::string& field) const;
  // If there are several replicas in the world, submits copies of what failed in the stream and in collectives to
  // the scalars that the replica's update reads; may be captured. A GPU runs what was queued, whatever failed
  // before.
  void submit_failures(int replica, Stream& stream) const;
  // Submits zeros to the shard's block: no examples, rates of 0, no totals.
  void clear_block(int shard) const;

 private:
  struct ShardMemory {
    Buffer block;
    Buffer scratch = {}, pinned_scratch = {};  // the objective's
  };

  void make_groups();
  void allocate();

  ModelState& model_;
  bool averaged_weights_;
  const std::vector<ShardArenas>* shard_arenas_;
  Shards shards_;
  std::optional<Objective> objective_;
  Program program_;
  BlockLayout layout_;
  std::vector<ReplicaGroup> groups_;  // by local replica, in training with several of the world
  std::vector<Buffer> workspaces_;    // by lane
  std::vector<ShardMemory> memory_;   // by shard
};

}  // namespace headrace
