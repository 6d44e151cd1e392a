// Which of several plans for one problem is taken, given what is known of each. Private to the CUDA backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace headrace::cuda {

struct PlanCandidate {
  std::string name = {};  // the library's own, the same from run to run
  std::int64_t workspace_bytes = 0;
  std::vector<float> milliseconds = {};  // of each timed run; empty: it was not timed, or did not run
};

// The median of its times; nothing without any.
std::optional<float> median_time(const PlanCandidate& candidate);

// Of at least one candidate, in the library's order of preference: the index of the fastest by median, of those
// within 2 % of it the first. Where none was timed, the first.
std::size_t choose_plan(std::span<const PlanCandidate> candidates);

// "proposal 3 of 5, 0.412 ms, the first takes 0.480 ms, workspace 12.0 MiB", or "proposal 1 of 1, not timed, ...".
std::string describe_choice(std::span<const PlanCandidate> candidates, std::size_t chosen);

}  // namespace headrace::cuda
