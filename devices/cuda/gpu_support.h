// The GPUs on which a build's kernels run. Plain C++. Private to the CUDA backend.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <compare>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::cuda {

struct ComputeCapability {
  int major = 0, minor = 0;

  auto operator<=>(const ComputeCapability&) const = default;
};

// The architectures for which a module was compiled. Machine code of X.y runs on GPUs X.z with z >= y; PTX of X.y
// on all from X.y on, where the driver compiles it on first use.
struct BuiltArchitectures {
  std::vector<ComputeCapability> code, ptx;
};

namespace support {

inline bool has_code_for(ComputeCapability gpu, const BuiltArchitectures& built) {
  return std::ranges::any_of(built.code, [&](ComputeCapability of) { return of.major == gpu.major && of <= gpu; });
}

inline std::string text(ComputeCapability of) { return fmt::format("{}.{}", of.major, of.minor); }

// Returns "8.0, 9.0, and PTX of 9.0".
inline std::string text(const BuiltArchitectures& built) {
  std::string all;
  for (const ComputeCapability of : built.code) all += (all.empty() ? "" : ", ") + text(of);
  for (const ComputeCapability of : built.ptx) all += (all.empty() ? "PTX of " : ", and PTX of ") + text(of);
  return all;
}

}  // namespace support

// Parses CMAKE_CUDA_ARCHITECTURES, separated by commas: "80-real,90" is code for 8.0, code and PTX for 9.0.
inline BuiltArchitectures parse_architectures(std::string_view list) {
  BuiltArchitectures built;
  while (!list.empty()) {
    const std::string_view word = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), word.size() + 1));
    int number = 0;
    const char* end = std::from_chars(word.data(), word.data() + word.size(), number).ptr;
    const std::string_view kind = word.substr(static_cast<std::size_t>(end - word.data()));
    const ComputeCapability of{.major = number / 10, .minor = number % 10};
    if (kind != "-virtual") built.code.push_back(of);
    if (kind != "-real") built.ptx.push_back(of);
  }
  return built;
}

enum class Support { kCode, kPtx, kNone };
inline Support support_of(ComputeCapability gpu, const BuiltArchitectures& built) {
  if (support::has_code_for(gpu, built)) return Support::kCode;
  return std::ranges::any_of(built.ptx, [&](ComputeCapability of) { return of <= gpu; }) ? Support::kPtx
                                                                                         : Support::kNone;
}

// Returns the message for the user of an unsupported GPU: why, and what to do.
inline std::string why_unsupported(ComputeCapability gpu, const BuiltArchitectures& built) {
  std::vector<ComputeCapability> all = built.code;
  all.insert(all.end(), built.ptx.begin(), built.ptx.end());
  const ComputeCapability oldest = all.empty() ? ComputeCapability{} : *std::ranges::min_element(all);
  if (gpu < oldest) {
    return fmt::format(
        "its compute capability is {}, and this build's kernels ({}) need {} or newer: use a newer GPU, or `cpu`",
        support::text(gpu), support::text(built), support::text(oldest));
  }
  return fmt::format(
      "this build's kernels ({}) are not for its compute capability {}: build with "
      "-DCMAKE_CUDA_ARCHITECTURES={}{}, or use `cpu`",
      support::text(built), support::text(gpu), gpu.major, gpu.minor);
}

}  // namespace headrace::cuda
