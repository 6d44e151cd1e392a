// Strategies and models in Python: each keeps alive what it needs.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "headrace/bindings/python/workers.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/launcher.h"
#include "headrace/devices/registry.h"
#include "headrace/train/model.h"
#include "headrace/train/strategy.h"

namespace headrace::python {

class PythonStrategy {
 public:
  // Waits for the other workers; `workers` may be null. Refuses to run alone in one of several processes, in
  // Python's words.
  PythonStrategy(const std::string& devices, WorkersPtr workers, bool standalone)
      : workers_(std::move(workers)),
        devices_(open(devices, joined(), standalone)),
        strategy_(devices_, {.announce = false, .workers = joined(), .standalone = true}) {}

  Strategy& get() noexcept { return strategy_; }
  const WorkersPtr& workers() const noexcept { return workers_; }

  // Counts the recoveries of the strategy from a failed run(): trainers made earlier can no longer be used.
  std::uint64_t failures() const noexcept { return failures_; }
  void note_failure() noexcept { ++failures_; }

 private:
  std::shared_ptr<Workers> joined() const { return workers_ ? workers_->get() : nullptr; }

  static DeviceGroup open(const std::string& devices, const std::shared_ptr<Workers>& workers, bool standalone) {
    if (!standalone && !workers) {
      refuse_to_run_beside_others(std::getenv,
                                  "give Strategy(workers=headrace.open_world()) to train with the others, or "
                                  "Strategy(standalone=True) where each is to run alone");
    }
    return open_devices(devices_of_worker(devices, workers.get()));
  }

  WorkersPtr workers_;  // destroyed last: signs off
  DeviceGroup devices_;
  Strategy strategy_;
  std::atomic<std::uint64_t> failures_{0};
};
using StrategyPtr = std::shared_ptr<PythonStrategy>;

class PythonModel {
 public:
  PythonModel(StrategyPtr strategy, Model model) : strategy_(std::move(strategy)), model_(std::move(model)) {}

  // Gives the model to this thread alone; repeatedly on the same thread, as in a callback of its fit. Throws
  // ConfigError while another thread has it.
  class Use {
   public:
    explicit Use(PythonModel& model) : lock_(model.used_, std::try_to_lock), model_(&model.model_) {
      if (!lock_.owns_lock()) {
        throw ConfigError("another thread is using this model",
                          "one thread at a time: wait until its call returns");
      }
    }
    Model* operator->() const noexcept { return model_; }
    Model& operator*() const noexcept { return *model_; }

   private:
    std::unique_lock<std::recursive_mutex> lock_;
    Model* model_;
  };
  Use use() { return Use(*this); }

  const StrategyPtr& strategy() const noexcept { return strategy_; }

  // Counts the calls of compile(): trainers made earlier use memory that is gone.
  std::uint64_t compiled() const noexcept { return compiled_; }
  void note_compile() noexcept { ++compiled_; }

 private:
  StrategyPtr strategy_;  // destroyed last
  Model model_;
  std::atomic<std::uint64_t> compiled_{0};
  std::recursive_mutex used_;
};

}  // namespace headrace::python
