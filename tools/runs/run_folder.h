// The folder of one run of `headrace train`.
#pragma once

#include <array>
#include <filesystem>
#include <string>

namespace CLI {
class App;
}

namespace headrace::tools {

inline constexpr const char* kHistoryFile = "history.jsonl";
inline constexpr const char* kModelFile = "model.txt";
inline constexpr const char* kPlanFile = "plan.txt";
inline constexpr const char* kRunFile = "run.json";             // what was run, and how it ended
inline constexpr const char* kInputFile = "input.json";         // the input engine's statistics
inline constexpr const char* kTimelineFile = "timeline.jsonl";  // how busy the devices were
inline constexpr const char* kReportFile = "report.html";       // the page of headrace report
inline constexpr std::array kRunFiles{kHistoryFile, kModelFile, kPlanFile, kRunFile, kInputFile, kTimelineFile};

// The prefix of later runs' folders, which lie in the first run's folder: "run-2", "run-3".
inline constexpr const char* kNumberedRun = "run-";

// The folder of a run's output, created before its work starts. If it was created here and is still empty at the
// end, because the run failed, it is removed.
class RunFolder {
 public:
  // Creates `folder` and its parents. If it already holds a run, creates a new folder in it, run-2 or the next
  // free number, even if several processes do so at once.
  explicit RunFolder(const std::filesystem::path& folder);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
  bool made_ = true;
};

// The command that a user typed, for the files of a run.

// Returns "headrace train --recipe mnist-mlp --data 'my data'", for a shell: the options in order, without
// defaults.
std::string typed_command(const CLI::App& command);

}  // namespace headrace::tools
