// Opens an archive: by the index that was kept when it was read last, or by reading it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "headrace/pipeline/sources/archives/archive_files.h"

namespace headrace {

// Opens a tar or zip archive; `window_limit` as in open_input(). Keeps an index (kept_index.h) of a plain tar
// that is behind a URL or large, once all its files were listed: their names and positions, and the bytes of those
// that were read meanwhile, such as labels.
std::unique_ptr<ArchiveFiles> open_archive(const std::filesystem::path& path,
                                           std::uint64_t window_limit = kWindowLimit);

// Returns the files that an index lists. Throws DataError naming the archive where it is damaged.
std::unique_ptr<ArchiveFiles> files_of_index(const std::filesystem::path& archive, std::vector<std::byte> index);

}  // namespace headrace
