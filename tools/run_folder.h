// The folder of one run of `headrace train`.
#pragma once

#include <filesystem>

namespace headrace::tools {

inline constexpr const char* kHistoryFile = "history.jsonl";
inline constexpr const char* kModelFile = "model.txt";
inline constexpr const char* kPlanFile = "plan.txt";

// Where a run writes, made before its work starts. One that was made here and is still empty at the end, since the
// run failed, is removed again.
class RunFolder {
 public:
  // Makes `folder` and those above it. Where it already holds a run, makes a new one in it, run-2 or the next
  // number that is free, also where several processes ask at once.
  explicit RunFolder(const std::filesystem::path& folder);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
  bool made_ = true;
};

}  // namespace headrace::tools
