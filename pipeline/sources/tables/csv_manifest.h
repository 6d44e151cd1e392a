// Recognises tables by the columns that their first line names.
#pragma once

#include <filesystem>

#include "headrace/pipeline/sources.h"

namespace headrace {

// Returns whether the file is text whose first line names the columns of the images and the labels: `path` and
// `label`, unless `columns` names others.
bool is_csv_manifest(const std::filesystem::path& path, const ColumnOptions& columns = {});
// Returns whether it is such text with the columns of a table without images: none of images, and one of labels
// or, if the file is called *.csv, the columns that `columns` takes along.
bool is_csv_table(const std::filesystem::path& path, const ColumnOptions& columns = {});
// Returns the options for reading such a table.
CsvOptions csv_options(const ColumnOptions& columns, std::uint64_t label_count);

}  // namespace headrace
