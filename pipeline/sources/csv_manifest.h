// Whether a file is a manifest of images.
#pragma once

#include <filesystem>

namespace headrace {

// Text whose first line names a column `path` and a column `label`.
bool is_csv_manifest(const std::filesystem::path& path);

}  // namespace headrace
