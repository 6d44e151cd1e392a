// Which plan a problem has, from one run to the next. Plain C++. Private to the CUDA backend.
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

// The plans that a library has for one problem on the device at hand.
class PlanOffer {
 public:
  virtual ~PlanOffer() = default;
  // Whether the plan of this name can be had.
  virtual bool has(const std::string& plan) = 0;
  // The library's preferred one; empty where there is none.
  virtual std::string first() = 0;
  // All of them, timed, in the library's order of preference.
  virtual std::vector<PlanCandidate> measure() = 0;
};

// Times a problem's plans once and keeps the choice: within the process for all replicas, and in a file for other
// processes and later runs. One process at a time measures, under a lock on the folder; the others find its
// choice. A choice that cannot be kept, because the folder cannot be written or locked, or because nothing could
// be timed, is none: then the library's first plan is taken, so that bits repeat all the same; under kFastest,
// which promises none, the fastest of the moment. A file that is damaged or another GPU's is replaced. What goes
// wrong is said, once, and never an error. Thread-safe; a thread that measures holds up the others.
class PlanStore {
 public:
  using Say = std::function<void(const std::string& remark)>;
  // An empty folder keeps nothing. `patience`: how long to wait for another process that measures.
  PlanStore(std::filesystem::path folder, Say say, std::chrono::milliseconds patience = std::chrono::seconds(60));

  struct Choice {
    std::string plan;  // empty where there is none
    std::string how;   // in words: "kept in FILE", or the candidates' times
  };
  Choice settle(const PlanTarget& target, const PlanProblem& problem, PlanOffer& offer);

  // A line of `headrace doctor`: how many choices are kept, for which GPUs, and how to forget them.
  Finding describe() const;

 private:
  // The plan in the file if the offer has it.
  std::optional<std::string> find(const std::filesystem::path& file, const PlanTarget& target,
                                  const PlanProblem& problem, PlanOffer& offer);
  Choice measure(const PlanTarget& target, const PlanProblem& problem, PlanOffer& offer);
  // Why it could not; empty where it did.
  std::string keep(const std::filesystem::path& file, const PlanTarget& target, const PlanProblem& problem,
                   const std::string& plan);
  void say_unkept(const std::string& trouble, const std::string& taken);
  void remark(const std::string& text);

  std::filesystem::path folder_;
  Say say_;
  std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::map<std::pair<PlanTarget, PlanProblem>, std::string> standing_;  // by mutex_, as what follows
  std::set<std::string> said_;
  std::string unwritable_;  // why no choice can be kept, once that is known
};

// $HEADRACE_CUDA_PLAN_FOLDER, else headrace/cuda_plans in $XDG_CACHE_HOME or ~/.cache; empty where none is named.
std::filesystem::path plan_folder();

}  // namespace headrace::cuda
