// The choice among several plans for one problem, and where choices are kept. Private to the CUDA backend.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/devices/backend.h"

namespace headrace::cuda {

// Which of a library's plans are admitted, and how one is chosen.
enum class Determinism {
  kDefault,  // the library's first plan of those that repeat their bits
  kTuned,    // the fastest of those, timed once per machine: the choice is kept (PlanStore), so that bits repeat
  kFastest,  // the fastest of all: cuDNN may sum with atomics. The choice is also kept, but bits need not repeat
};

// Returns the value of HEADRACE_CUDA_MATH: "default", "tuned" or "fastest"; std::nullopt if it is unset or empty.
// Throws ConfigError for any other value.
std::optional<Determinism> named_determinism();

struct PlanCandidate {
  std::string name = {};  // the library's own, the same from run to run
  std::int64_t workspace_bytes = 0;
  std::vector<float> milliseconds = {};  // of each timed run; empty: it was not timed, or did not run
};

// Returns the median of its times; std::nullopt without any.
std::optional<float> median_time(const PlanCandidate& candidate);

// Returns the index of the first candidate within 2 % of the fastest by median; 0 if none was timed. REQUIRES: at
// least one candidate, in the library's order of preference.
std::size_t choose_plan(std::span<const PlanCandidate> candidates);

// Returns "proposal 3 of 5, 0.412 ms, the first takes 0.480 ms, workspace 12.0 MiB", or "proposal 1 of 1, not
// timed, ...".
std::string describe_choice(std::span<const PlanCandidate> candidates, std::size_t chosen);

// Chosen plans on disk, see FORMAT.md. Plain C++.

// The target of plans: one kind of GPU and one version of the library that has the plans.
struct PlanTarget {
  std::string gpu;                 // "NVIDIA H100 80GB HBM3"
  std::string compute_capability;  // "9.0"
  int multiprocessors = 0;
  std::string library;  // "cuDNN 9.19.0"

  auto operator<=>(const PlanTarget&) const = default;
};

// Returns "NVIDIA H100 80GB HBM3, sm_90, 132 multiprocessors, cuDNN 9.19.0".
std::string to_string(const PlanTarget& target);

// Problems in words, and the library's name of each one's plan.
struct PlanProblem {
  Determinism determinism = Determinism::kTuned;
  std::string text;

  auto operator<=>(const PlanProblem&) const = default;
};
using ChosenPlans = std::map<PlanProblem, std::string>;

// The contents of a file of plans. `trouble`: why it cannot be used, without its name; then there are no plans.
struct PlanFile {
  PlanTarget target;
  ChosenPlans plans;
  std::string trouble;
};

// Returns the path of the target's file in a folder.
std::filesystem::path plan_file_path(const std::filesystem::path& folder, const PlanTarget& target);

std::string plan_file_text(const PlanTarget& target, const ChosenPlans& plans);
PlanFile parse_plan_file(std::string_view text);

// Returns an empty PlanFile if there is no file. Throws nothing: problems are reported in `trouble`.
PlanFile read_plan_file(const std::filesystem::path& path);

// Keeps the plan of each problem from run to run. Plain C++.

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
