// The files of a folder of checkpoints.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "headrace/train/records/record.h"

namespace headrace {

inline constexpr const char* kBestCheckpoint = "best.safetensors";

// The newest that is complete, by its step; every byte of it was checked.
std::optional<Record> open_newest_checkpoint(const std::filesystem::path& folder);

// Which checkpoints of one training lie in the folder. One thread.
class KeptCheckpoints {
 public:
  // Finds those of the training called `run` (TrainingPosition::run), and removes unfinished files whose writers
  // are gone. Makes the folder. `keep`: as CheckpointOptions.
  KeptCheckpoints(const std::filesystem::path& folder, const std::string& run, int keep);

  // A checkpoint was written, of this step: removes those that are too many. The best one is not counted.
  void add(const std::filesystem::path& file, std::uint64_t step);

 private:
  int keep_;
  std::map<std::filesystem::path, std::uint64_t> steps_;
};

}  // namespace headrace
