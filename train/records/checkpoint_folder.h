// A folder of checkpoints, and the thread that writes files beside the training.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/devices/base/file_lock.h"
#include "headrace/train/checkpoints.h"
#include "headrace/train/records/record.h"

namespace headrace {

// The files of a checkpoint folder.

inline constexpr const char* kBestCheckpoint = "best.safetensors";

struct FoundCheckpoint {
  std::optional<Record> record = {};                  // every byte of it was checked
  std::vector<UnreadableCheckpoint> unreadable = {};  // those met on the way to it
};

// Returns the newest checkpoint by step. `trained`: only one that a training can continue from. Ignores other
// programs' tensor files. Throws DataError naming each file if none of the checkpoints can be read.
FoundCheckpoint find_newest_checkpoint(const std::filesystem::path& folder, bool trained);

// Prints a line for each.
void warn_of(const std::vector<UnreadableCheckpoint>& unreadable, std::FILE* output);

// Returns the checkpoints of trainings in the folder and those that cannot be read, except those of the training
// called `run` (TrainingPosition::run).
std::vector<std::filesystem::path> checkpoints_of_others(const std::filesystem::path& folder,
                                                         const std::string& run);

// The folder of a training, locked against other trainings while this object lives; a killed process holds no
// lock. File systems without locks give no such protection.
class TrainingFolder {
 public:
  // Creates the folder and removes unfinished files whose writers are gone. Throws DataError if another training
  // holds it and does not end within some seconds, or if no file can be written there.
  explicit TrainingFolder(const std::filesystem::path& folder);
  // Throws ConfigError if it holds what checkpoints_of_others() finds.
  void require_unused(const std::string& run) const;

 private:
  std::filesystem::path folder_;
  std::unique_ptr<FolderLock> lock_;
};

// Tracks the checkpoints of one training in a folder. REQUIRES: the folder exists. One thread.
class KeptCheckpoints {
 public:
  // Finds those of the training called `run`. `keep`: see CheckpointOptions.
  KeptCheckpoints(const std::filesystem::path& folder, const std::string& run, int keep);

  // Adds the checkpoint just written at this step, and removes the oldest surplus ones. Not for the best one.
  void add(const std::filesystem::path& file, std::uint64_t step);

 private:
  int keep_;
  std::map<std::filesystem::path, std::uint64_t> steps_;
};

inline constexpr const char* kCheckpointSuffix = ".safetensors";

// Placeholders and their values: whole numbers or not; std::nullopt if not known yet.
using NameValues = std::vector<std::pair<std::string, std::optional<double>>>;

// Returns the name with its suffix. Whole numbers without a format are written as integers, unknown values as
// "none". Throws ConfigError for an unmatched brace, an unknown placeholder, an invalid format, and a name that is
// empty or contains a folder.
std::string checkpoint_name(const std::string& pattern, const NameValues& values);

// Writes files beside the training, in order.

// One thread adds work; the writer's thread does it, or the caller at once if the writer is not asynchronous. An
// error ends the writing and is thrown once, by the next call except the destructor.
class CheckpointWriter {
 public:
  explicit CheckpointWriter(bool asynchronous);
  ~CheckpointWriter();  // waits for the work added
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Returns the number of pieces of work that are not done yet.
  std::size_t unfinished();
  void add(std::function<void()> work);
  // Waits until at most `left` pieces remain.
  void wait_until(std::size_t left);

 private:
  void run();
  void rethrow(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::deque<std::function<void()>> work_;  // the first is in progress
  std::exception_ptr failure_;
  bool failed_ = false, ending_ = false;

  bool asynchronous_;
  std::thread thread_;
};

}  // namespace headrace
