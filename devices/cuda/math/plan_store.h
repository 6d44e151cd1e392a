// Keeps the plan of each problem from run to run. Plain C++. Private to the CUDA backend.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/backend.h"
#include "headrace/devices/cuda/math/plan_choice.h"
#include "headrace/devices/cuda/math/plan_file.h"

namespace headrace::cuda {

// A library's plans for one problem on the current device.
class PlanOffer {
 public:
  virtual ~PlanOffer() = default;
  // Returns whether the plan of this name is available.
  virtual bool has(const std::string& plan) = 0;
  // Returns the library's preferred plan; empty if there is none.
  virtual std::string first() = 0;
  // Times all plans and returns them in the library's order of preference.
  virtual std::vector<PlanCandidate> measure() = 0;
};

// Times a problem's plans once and keeps the choice: within the process for all replicas, and in a file for other
// processes and later runs. One process at a time measures, under a lock on the folder; the others find its
// choice. If a choice cannot be kept, because the folder cannot be written or locked or nothing could be timed,
// the library's first plan is taken, so that bits still repeat; under kFastest, which does not promise that, the
// currently fastest. A damaged file or one of another GPU is replaced. Problems are reported once and never throw.
// Thread-safe; a thread that measures blocks the others.
class PlanStore {
 public:
  using Say = std::function<void(const std::string& remark)>;
  // With an empty `folder` nothing is kept. `patience`: how long to wait for another process that measures.
  PlanStore(std::filesystem::path folder, Say say, std::chrono::milliseconds patience = std::chrono::seconds(60));

  struct Choice {
    std::string plan;  // empty if there is none
    std::string how;   // in words: "kept in FILE", or the candidates' times
  };
  Choice settle(const PlanTarget& target, const PlanProblem& problem, PlanOffer& offer);

  // Returns a line of `headrace doctor`: how many choices are kept, for which GPUs, and how to forget them.
  Finding describe() const;

 private:
  // Returns the plan in the file if the offer has it.
  std::optional<std::string> find(const std::filesystem::path& file, const PlanTarget& target,
                                  const PlanProblem& problem, PlanOffer& offer);
  Choice measure(const PlanTarget& target, const PlanProblem& problem, PlanOffer& offer);
  // Keeps the plan in the file. Returns why it could not; empty on success.
  std::string keep(const std::filesystem::path& file, const PlanTarget& target, const PlanProblem& problem,
                   const std::string& plan);
  void say_unkept(const std::string& trouble, const std::string& taken);
  void remark(const std::string& text);

  std::filesystem::path folder_;
  Say say_;
  std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::map<std::pair<PlanTarget, PlanProblem>, std::string> standing_;  // by mutex_, like the members below
  std::set<std::string> said_;
  std::string unwritable_;  // why no choice can be kept, once known
};

// Returns $HEADRACE_CUDA_PLAN_FOLDER, else headrace/cuda_plans in $XDG_CACHE_HOME or ~/.cache; empty if none is
// set.
std::filesystem::path plan_folder();

}  // namespace headrace::cuda
