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

// Returns a line for each thing left out of the data; `columns_option`: the command has --columns.
std::vector<std::string> left_out_lines(const std::vector<LeftOut>& left_out,
                                        const std::vector<SourceColumn>& columns, bool columns_option);
// Prints these lines on standard error.
void report_left_out(const std::vector<LeftOut>& left_out, const std::vector<SourceColumn>& columns,
                     bool columns_option);

}  // namespace headrace::tools
