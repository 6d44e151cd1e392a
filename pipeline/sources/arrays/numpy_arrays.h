// NumPy's arrays as sources: which files hold them.
#pragma once

#include <filesystem>

namespace headrace {

bool is_npy(const std::filesystem::path& file);
// Whether it is a zip archive whose first file is a .npy.
bool is_npz(const std::filesystem::path& file);

}  // namespace headrace
