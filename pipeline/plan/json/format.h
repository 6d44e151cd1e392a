// Constants of every plan's JSON.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace::plan_json {

inline constexpr const char* kVersionName = "headrace_plan";
// Raise it if an older reader would take a plan for another one.
inline constexpr std::uint32_t kVersion = 2;
// For all datasets of a plan together.
inline constexpr std::size_t kMaxStages = 1000;

}  // namespace headrace::plan_json
