// The choice among several plans for one problem. Private to the CUDA backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

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

}  // namespace headrace::cuda
