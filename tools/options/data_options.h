// Which data a command works on, and what the user says about them.
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

// --data, which it returns, and what the folders of images mean.
CLI::Option* add_data_options(CLI::App& command, std::filesystem::path& data, LayoutOptions& layout);

// --image-column, --label-column and --label-type; with `further` also --columns.
void add_column_options(CLI::App& command, ColumnOptions& columns, bool further);

// What was left out of the data, a line each; `columns_option`: the command has --columns.
std::vector<std::string> left_out_lines(const std::vector<LeftOut>& left_out,
                                        const std::vector<SourceColumn>& columns, bool columns_option);
// The same on standard error.
void report_left_out(const std::vector<LeftOut>& left_out, const std::vector<SourceColumn>& columns,
                     bool columns_option);

}  // namespace headrace::tools
