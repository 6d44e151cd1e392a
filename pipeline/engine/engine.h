// A running plan: its parts, wired together. README.md explains how a batch passes through them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/pipeline/engine/assembler.h"
#include "headrace/pipeline/engine/engine_thread.h"
#include "headrace/pipeline/engine/slot_memory.h"
#include "headrace/pipeline/engine/telemetry.h"
#include "headrace/pipeline/engine/tuning.h"
#include "headrace/pipeline/tasks/worker_allowance.h"

namespace headrace {

// Shared by its threads and lanes: one that hangs in user code keeps the engine alive, without the devices'
// memory.
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  // Waits, time-outs and the autotuner's windows use `clock`. REQUIRES: `clock` outlives this.
  Engine(const Dataset& dataset, DeviceGroup& devices, const LoaderOptions& options,
         const Clock& clock = system_clock());

  // Starts the threads. REQUIRES: called once, after construction.
  void start();
  // Ends or abandons threads and lanes and frees the devices' memory. Nothing else may be called afterwards.
  void shut_down() noexcept;

  std::optional<Batch> next(int replica, std::optional<std::uint64_t> epoch = std::nullopt);
  void stop() noexcept;
  LoaderState state() const;
  LoaderStats stats() const { return telemetry_.stats(delivery_, tuning_); }
  std::string trace_json() const;
  std::vector<Choice> choices() const { return choices_.list(); }
  int burst() const noexcept { return static_cast<int>(ring_->burst()); }
  const RunPlan& run() const noexcept { return run_; }
  const Tuning& tuning() const noexcept { return tuning_; }
  // Returns whether this is a process forked after the start, in which the threads do not exist.
  bool is_forked() const noexcept;

 private:
  void note_placement(const DeviceGroup& devices);

  long process_;
  Budgets budgets_;
  Choices choices_;
  RunPlan run_;
  std::shared_ptr<Trace> trace_;  // null: no tracing
  WorkerAllowance allowance_;
  Transfer transfer_;
  SlotMemory memory_;  // its slots belong to the ring
  std::shared_ptr<Ring> ring_;
  RecordReader reader_;
  RowErrors errors_;
  ReadAhead read_ahead_;
  RemoteReads remote_reads_;
  Compute compute_;
  Readers readers_;
  std::unique_ptr<StreamFeed> feed_;  // null unless the source is a stream
  std::shared_ptr<ThreadState> assembling_ = std::make_shared<ThreadState>(1);
  Assembler assembler_;
  Telemetry telemetry_;
  Delivery delivery_;
  Tuning tuning_;
  std::optional<EngineThread> assembler_thread_;
};

}  // namespace headrace
