// The names of unsupported formats, for errors about unrecognised files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "headrace/devices/base/error.h"

namespace headrace {

// Throws kUnsupported naming the format and a remedy if a file starts like one with unsupported packing: xz,
// bzip2, 7z, rar ... Otherwise returns. `source` is its path.
void refuse_packed_otherwise(const std::string& source, std::span<const std::byte> start);

// Returns the error (kDataCorrupt) for a file that no source reads. It names the format, if the first bytes
// identify it, and the supported formats.
DataError not_recognised(const std::filesystem::path& path);

}  // namespace headrace
