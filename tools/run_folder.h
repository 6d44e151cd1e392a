// The folder of one run of `headrace train`.
#pragma once

#include <filesystem>

namespace headrace::tools {

inline constexpr const char* kHistoryFile = "history.jsonl";
inline constexpr const char* kModelFile = "model.txt";
inline constexpr const char* kPlanFile = "plan.txt";

// Makes `folder` and those above it. Where it already holds a run, makes a new one in it, run-2 or the next number
// that is free, also where several processes ask at once. Returns the folder to use.
std::filesystem::path make_run_folder(const std::filesystem::path& folder);

}  // namespace headrace::tools
