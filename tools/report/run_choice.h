// Which of the runs in a folder is meant.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace headrace::tools {

// A run and its number: 1 is in the folder itself, 2 in its folder run-2.
struct NumberedFolder {
  std::uint64_t number = 1;
  std::filesystem::path path;
};

// All there are, by number. DataError where the folder is none, cannot be read or holds no run.
std::vector<NumberedFolder> runs_in(const std::filesystem::path& folder);

// The one that began last, as its run.json says; where that does not tell, the one with the highest number.
const NumberedFolder& newest_of(const std::vector<NumberedFolder>& runs);

}  // namespace headrace::tools
