// The names of formats that are not read: for the errors about files that are not recognised.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "headrace/devices/base/error.h"

namespace headrace {

// kUnsupported naming the format and what to do, where a file starts like one that is packed in a way that is not
// read: xz, bzip2, 7z, rar ... Returns otherwise. `source` is its path.
void refuse_packed_otherwise(const std::string& source, std::span<const std::byte> start);

// The error (kDataCorrupt) for a file that no source reads. It names the format where the first bytes tell it, and
// what is read.
DataError not_recognised(const std::filesystem::path& path);

}  // namespace headrace
