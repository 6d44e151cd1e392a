// The folder of one run of `headrace train`.
#pragma once

#include <array>
#include <filesystem>

namespace headrace::tools {

inline constexpr const char* kHistoryFile = "history.jsonl";
inline constexpr const char* kModelFile = "model.txt";
inline constexpr const char* kPlanFile = "plan.txt";
inline constexpr const char* kRunFile = "run.json";             // what was run, and how it ended
inline constexpr const char* kInputFile = "input.json";         // what the input engine measured of itself
inline constexpr const char* kTimelineFile = "timeline.jsonl";  // how busy the devices were
inline constexpr const char* kReportFile = "report.html";       // what headrace report makes of it all
inline constexpr std::array kRunFiles{kHistoryFile, kModelFile, kPlanFile, kRunFile, kInputFile, kTimelineFile};

// Of the runs after the first one, which lie in its folder: "run-2", "run-3".
inline constexpr const char* kNumberedRun = "run-";

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
