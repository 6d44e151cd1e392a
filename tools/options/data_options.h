// Which data a command works on, and what the user says about them.
#pragma once

#include <filesystem>
#include <vector>

#include "headrace/pipeline/sources.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace headrace::tools {

// --data, which it returns, and what the folders of images mean.
CLI::Option* add_data_options(CLI::App& command, std::filesystem::path& data, LayoutOptions& layout);

// One line on standard error where something was left out.
void report_left_out(const std::vector<LeftOut>& left_out);

}  // namespace headrace::tools
