#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "headrace/devices/base/error.h"
#include "headrace/devices/cuda/math/plan_choice.h"

namespace headrace::cuda {
namespace {

constexpr float kClear = 1.02F;  // smaller differences are noise: the order of preference decides

}  // namespace

std::optional<Determinism> named_determinism() {
  const char* variable = std::getenv("HEADRACE_CUDA_MATH");
  const std::string word = variable == nullptr ? "" : variable;
  if (word.empty()) return std::nullopt;
  if (word == "default") return Determinism::kDefault;
  if (word == "tuned") return Determinism::kTuned;
  if (word == "fastest") return Determinism::kFastest;
  throw ConfigError("HEADRACE_CUDA_MATH is '" + word + "'", "it must be default, tuned or fastest");
}

std::optional<float> median_time(const PlanCandidate& candidate) {
  if (candidate.milliseconds.empty()) return std::nullopt;
  std::vector<float> times = candidate.milliseconds;
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

std::size_t choose_plan(std::span<const PlanCandidate> candidates) {
  std::optional<float> fastest;
  for (const PlanCandidate& candidate : candidates) {
    const std::optional<float> time = median_time(candidate);
    if (time && (!fastest || *time < *fastest)) fastest = time;
  }
  if (!fastest) return 0;
  const auto chosen = std::ranges::find_if(candidates, [&](const PlanCandidate& candidate) {
    const std::optional<float> time = median_time(candidate);
    return time && *time <= *fastest * kClear;
  });
  return static_cast<std::size_t>(chosen - candidates.begin());
}

std::string describe_choice(std::span<const PlanCandidate> candidates, std::size_t chosen) {
  const std::optional<float> time = median_time(candidates[chosen]), first = median_time(candidates.front());
  std::string text = fmt::format("proposal {} of {}, ", chosen + 1, candidates.size());
  text += time ? fmt::format("{:.3f} ms", *time) : "not timed";
  if (chosen != 0) text += first ? fmt::format(", the first takes {:.3f} ms", *first) : ", the first did not run";
  return text + fmt::format(", workspace {:.1f} MiB",
                            static_cast<double>(candidates[chosen].workspace_bytes) / (1 << 20));
}

}  // namespace headrace::cuda
