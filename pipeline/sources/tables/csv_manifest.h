// Whether a file is a manifest of images.
#pragma once

#include <filesystem>

#include "headrace/pipeline/sources.h"

namespace headrace {

// Text whose first line names the columns of the images and the labels: `path` and `label`, unless others are
// named.
bool is_csv_manifest(const std::filesystem::path& path, const ColumnOptions& columns = {});
// How the table is read then.
CsvOptions csv_options(const ColumnOptions& columns, std::uint64_t label_count);

}  // namespace headrace
