// Detects outputs that would destroy an input.
#pragma once

#include <filesystem>

namespace headrace {

// Returns whether writing a file at `output` changes `input`, or a file in the folder `input`: compared by device
// and inode, links followed. False if `output` does not exist; otherwise walks the folder.
bool would_overwrite(const std::filesystem::path& output, const std::filesystem::path& input);

// Returns whether a file at `output` would lie in the folder `input`, at any depth, links followed.
bool would_add(const std::filesystem::path& output, const std::filesystem::path& input);

}  // namespace headrace
