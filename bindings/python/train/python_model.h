// Strategies and models in Python: each keeps alive what it needs.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "headrace/bindings/python/module.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/launcher.h"
#include "headrace/devices/registry.h"
#include "headrace/train/model.h"
#include "headrace/train/strategy.h"

namespace headrace::python {

// An object whose threads and locks exist only in the process that made it: a forked process can neither use nor
// destroy it.
template <typename Object>
class OfProcess {
 public:
  OfProcess() = default;
  explicit OfProcess(std::unique_ptr<Object> object) : object_(std::move(object)) {}
  OfProcess(const OfProcess&) = delete;
  OfProcess& operator=(const OfProcess&) = delete;
  ~OfProcess() { reset(); }

  void set(std::unique_ptr<Object> object) noexcept { object_ = std::move(object); }
  void reset() noexcept {
    if (is_forked()) static_cast<void>(object_.release());
    object_.reset();
  }
  bool is_forked() const noexcept { return getpid() != process_; }
  // Throws ConfigError in a forked process.
  Object& get() const {
    if (!is_forked()) return *object_;
    throw ConfigError("this was made before fork(): its threads are not in this process",
                      "make it in the process that uses it, or start that by spawn");
  }

 private:
  pid_t process_ = getpid();
  std::unique_ptr<Object> object_;
};

class PythonStrategy {
 public:
  // Waits for the other workers; `workers` may be null. Refuses to run alone in one of several processes, in
  // Python's words.
  PythonStrategy(const std::string& devices, WorkersPtr workers, bool standalone)
      : workers_(std::move(workers)), parts_(std::make_unique<Parts>(devices, joined(), standalone)) {}

  Strategy& get() const { return parts_.get().strategy; }
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

  struct Parts {
    Parts(const std::string& names, const std::shared_ptr<Workers>& workers, bool standalone)
        : devices(open(names, workers, standalone)),
          strategy(devices, {.announce = false, .workers = workers, .standalone = true}) {}

    DeviceGroup devices;
    Strategy strategy;
  };

  WorkersPtr workers_;  // destroyed last: signs off
  OfProcess<Parts> parts_;
  std::atomic<std::uint64_t> failures_{0};
};
using StrategyPtr = std::shared_ptr<PythonStrategy>;

class PythonModel {
 public:
  PythonModel(StrategyPtr strategy, Model model)
      : strategy_(std::move(strategy)), model_(std::make_unique<Model>(std::move(model))) {}

  // Gives the model to this thread alone; repeatedly on the same thread, as in a callback of its fit. Throws
  // ConfigError while another thread has it.
  class Use {
   public:
    explicit Use(PythonModel& model) : model_(&model.model_.get()), lock_(model.used_, std::try_to_lock) {
      if (!lock_.owns_lock()) {
        throw ConfigError("another thread is using this model",
                          "one thread at a time: wait until its call returns");
      }
    }
    Model* operator->() const noexcept { return model_; }
    Model& operator*() const noexcept { return *model_; }

   private:
    Model* model_;
    std::unique_lock<std::recursive_mutex> lock_;
  };
  Use use() { return Use(*this); }

  const StrategyPtr& strategy() const noexcept { return strategy_; }

  // Counts the calls of compile(): trainers made earlier use memory that is gone.
  std::uint64_t compiled() const noexcept { return compiled_; }
  void note_compile() noexcept { ++compiled_; }

 private:
  StrategyPtr strategy_;  // destroyed last
  OfProcess<Model> model_;
  std::atomic<std::uint64_t> compiled_{0};
  std::recursive_mutex used_;
};

}  // namespace headrace::python
