// Strategies and models in Python: each keeps alive what it needs.
#pragma once

#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/launcher.h"
#include "headrace/devices/registry.h"
#include "headrace/train/model.h"
#include "headrace/train/strategy.h"

namespace headrace::python {

class PythonStrategy {
 public:
  // Refuses to run in one of several processes, in Python's words.
  PythonStrategy(const std::string& devices, bool standalone)
      : devices_(open(devices, standalone)), strategy_(devices_, {.announce = false, .standalone = true}) {}

  Strategy& get() noexcept { return strategy_; }

 private:
  static DeviceGroup open(const std::string& devices, bool standalone) {
    if (!standalone) refuse_to_run_beside_others(std::getenv, "give Strategy(standalone=True) where each is to run alone");
    return open_devices(devices);
  }

  DeviceGroup devices_;
  Strategy strategy_;
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

 private:
  StrategyPtr strategy_;  // destroyed last
  Model model_;
  std::recursive_mutex used_;
};

}  // namespace headrace::python
