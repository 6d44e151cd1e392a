// Recognises a manifest of images.
#pragma once

#include <filesystem>

#include "headrace/pipeline/sources.h"

namespace headrace {

// Returns whether the file is text whose first line names the columns of the images and the labels: `path` and
// `label`, unless `columns` names others.
bool is_csv_manifest(const std::filesystem::path& path, const ColumnOptions& columns = {});
// Returns the options for reading such a table.
CsvOptions csv_options(const ColumnOptions& columns, std::uint64_t label_count);

}  // namespace headrace
