// Whether an output would destroy an input.
#pragma once

#include <filesystem>

namespace headrace {

// Whether writing a file at `output` changes `input`, or a file that `input`, a folder, holds: by device and
// inode, links followed. False where nothing lies at `output`. Where something does, walks the folder.
bool would_overwrite(const std::filesystem::path& output, const std::filesystem::path& input);

}  // namespace headrace
