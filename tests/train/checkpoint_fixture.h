// What tests of checkpoints train on, and what they find in a folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "headrace/devices/base/file.h"
#include "headrace/tests/train/toy_data.h"

namespace headrace::test {

inline const Dataset& kept_data() {
  static const Dataset data = blobs(40).shuffle().batch({.global_batch = 8});
  return data;
}

inline std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : list_directory(folder)) names.push_back(entry.path.filename().string());
  return names;
}

}  // namespace headrace::test
