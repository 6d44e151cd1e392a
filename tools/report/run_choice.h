// Chooses one of the runs in a folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace headrace::tools {

// A run and its number: run 1 is in the folder itself, run 2 in its folder run-2.
struct NumberedFolder {
  std::uint64_t number = 1;
  std::filesystem::path path;
};

// Returns all runs, by number. Throws DataError if it is not a folder, cannot be read or holds no run.
std::vector<NumberedFolder> runs_in(const std::filesystem::path& folder);

// Returns the run that began last according to its run.json; if that does not tell, the one with the highest
// number.
const NumberedFolder& newest_of(const std::vector<NumberedFolder>& runs);

}  // namespace headrace::tools
