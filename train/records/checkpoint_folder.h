// The files of a folder of checkpoints.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/base/file_lock.h"
#include "headrace/train/checkpoints.h"
#include "headrace/train/records/record.h"

namespace headrace {

inline constexpr const char* kBestCheckpoint = "best.safetensors";

struct FoundCheckpoint {
  std::optional<Record> record = {};                  // every byte of it was checked
  std::vector<UnreadableCheckpoint> unreadable = {};  // those on the way to it
};

// The newest by its step. `trained`: only those that a training can go on from count. Other programs' tensor files
// are no checkpoints. DataError naming each file where there are checkpoints and none of them can be read.
FoundCheckpoint find_newest_checkpoint(const std::filesystem::path& folder, bool trained);

// A line for each.
void warn_of(const std::vector<UnreadableCheckpoint>& unreadable, std::FILE* output);

// The checkpoints of trainings in the folder, and those that cannot be read, but for those of the training called
// `run` (TrainingPosition::run).
std::vector<std::filesystem::path> checkpoints_of_others(const std::filesystem::path& folder,
                                                         const std::string& run);

// The folder of a training, which nobody else can train into for as long as it lives; a process that was killed
// holds nothing. Where the file system has no locks, others can.
class TrainingFolder {
 public:
  // Makes the folder, and removes unfinished files whose writers are gone. DataError where another training has
  // it, after some seconds in which that may end, or where no file can be written there.
  explicit TrainingFolder(const std::filesystem::path& folder);
  // ConfigError where it holds what checkpoints_of_others() finds.
  void require_unused(const std::string& run) const;

 private:
  std::filesystem::path folder_;
  std::unique_ptr<FolderLock> lock_;
};

// Which checkpoints of one training lie in the folder, which exists. One thread.
class KeptCheckpoints {
 public:
  // Finds those of the training called `run`. `keep`: as CheckpointOptions.
  KeptCheckpoints(const std::filesystem::path& folder, const std::string& run, int keep);

  // A checkpoint was written, of this step: removes those that are too many. The best one is not counted.
  void add(const std::filesystem::path& file, std::uint64_t step);

 private:
  int keep_;
  std::map<std::filesystem::path, std::uint64_t> steps_;
};

}  // namespace headrace
