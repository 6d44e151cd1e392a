// Recognises files with NumPy's arrays.
#pragma once

#include <filesystem>

namespace headrace {

bool is_npy(const std::filesystem::path& file);
// Returns whether it is a zip archive whose first file is a .npy.
bool is_npz(const std::filesystem::path& file);

}  // namespace headrace
