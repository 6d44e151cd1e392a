// The options that select and describe a command's data.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "headrace/pipeline/sources.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace headrace::tools {

// Adds --data, which it returns, and the options of image folders.
CLI::Option* add_data_options(CLI::App& command, std::filesystem::path& data, LayoutOptions& layout);

// Adds --image-column, --label-column and --label-type; with `further` also --columns.
void add_column_options(CLI::App& command, ColumnOptions& columns, bool further);

// Prints on standard error how the data were read, Dataset::reading(), and returns the line; `columns_option`: the
// command has --columns.
std::string report_reading(std::string reading, bool columns_option);

}  // namespace headrace::tools
