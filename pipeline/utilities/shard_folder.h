// The folder that shards are written to, one after another, perhaps in several runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/pipeline/convert.h"
#include "headrace/pipeline/sources/records/record_file_format.h"

namespace headrace {

// Creates the folder, if it is missing, with its marker (shard_files.h), or accepts one with the same marker: of
// an unfinished run. `text`: everything that the bytes of the shards depend on. `beginning`: of the names of those
// that will be written. Throws ConfigError for a folder that has such shards and no marker, or another one.
void begin_shards(const std::filesystem::path& folder, const std::string& text, std::string_view beginning);

// Returns the size of a shard that an unfinished run left there; std::nullopt: there is none, or it is another.
std::optional<std::uint64_t> size_of_finished(const std::filesystem::path& path, const RecordFileHeader& header,
                                              ConvertFormat format);

}  // namespace headrace
