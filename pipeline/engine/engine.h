// A running plan: its parts, wired. README.md tells how a batch goes through them.
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

// Shared by its threads and lanes: one that hangs in user code keeps it alive, without the devices' memory.
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  // Waits, time-outs and the autotuner's windows go by `clock`, which must outlive it.
  Engine(const Dataset& dataset, DeviceGroup& devices, const LoaderOptions& options,
         const Clock& clock = system_clock());

  // Starts the threads; once, after construction.
  void start();
  // Ends or gives up threads and lanes and frees the devices' memory. Nothing else may be called afterwards.
  void shut_down() noexcept;

  std::optional<Batch> next(int replica);
  void stop() noexcept;
  LoaderState state() const;
  LoaderStats stats() const { return telemetry_.stats(delivery_, tuning_); }
  std::string trace_json() const;
  std::vector<Choice> choices() const { return choices_.list(); }
  const RunPlan& run() const noexcept { return run_; }
  const Tuning& tuning() const noexcept { return tuning_; }
  // True in a process forked off after the start: there the threads do not exist.
  bool is_forked() const noexcept;

 private:
  void note_placement(const DeviceGroup& devices);

  long process_;
  Budgets budgets_;
  Choices choices_;
  RunPlan run_;
  std::shared_ptr<Trace> trace_;  // null: nothing is traced
  WorkerAllowance allowance_;
  Transfer transfer_;
  SlotMemory memory_;  // its slots are the ring's
  std::shared_ptr<Ring> ring_;
  RecordReader reader_;
  RowErrors errors_;
  ReadAhead read_ahead_;
  Compute compute_;
  Readers readers_;
  std::unique_ptr<StreamFeed> feed_;  // where the source is a stream; else null
  std::shared_ptr<ThreadState> assembling_ = std::make_shared<ThreadState>(1);
  Assembler assembler_;
  Telemetry telemetry_;
  Delivery delivery_;
  Tuning tuning_;
  std::optional<EngineThread> assembler_thread_;
};

}  // namespace headrace
