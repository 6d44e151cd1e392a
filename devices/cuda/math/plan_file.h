// Chosen plans on disk, see FORMAT.md. Plain C++. Private to the CUDA backend.
#pragma once

#include <compare>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/devices/cuda/math/plan_choice.h"

namespace headrace::cuda {

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

}  // namespace headrace::cuda
