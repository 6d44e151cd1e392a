// The image members of a tar archive, or the reason why they cannot be had.
#pragma once

#include <optional>

#include "headrace/pipeline/sources/tar_reader.h"

namespace headrace {

// The next regular file. DataError for a link with an image's name: its bytes lie elsewhere.
std::optional<TarMember> next_file(TarReader& reader, const std::string& archive);

}  // namespace headrace
