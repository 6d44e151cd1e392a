#include "headrace/tools/options/data_options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>

#include "headrace/devices/base/error.h"
#include "headrace/tools/options/options.h"
#include "headrace/tools/output/print.h"

namespace headrace::tools {
namespace {

// Replaces "-" with the path of standard input. Returns an empty complaint, as a validator does.
std::string standard_input_for_dash(std::string& path) {
  if (path != "-") return {};
  if (::isatty(STDIN_FILENO) == 1) {
    throw ConfigError("--data - is standard input, and that is a terminal",
                      "pipe data into it, as in: cat train.tar | headrace digest --data - ...");
  }
  path = "/dev/stdin";
  return {};
}

}  // namespace

CLI::Option* add_data_options(CLI::App& command, std::filesystem::path& data, LayoutOptions& layout) {
  CLI::Option* option =
      command
          .add_option(
              "--data", data,
              "a folder, archive, file, pipe or URL (https://HOST/FILE, https://HOST/train-{000..099}.tar, "
              "s3://BUCKET/PREFIX/), - for standard input; its format is recognised by content")
          ->type_name("PATH")
          ->transform(CLI::Validator([](std::string& path) { return standard_input_for_dash(path); }, ""));
  for (const char* field : {"classes_at", "train_folder", "test_folder"}) add_field(command, layout, {field});
  return option;
}

void add_column_options(CLI::App& command, ColumnOptions& columns, bool further) {
  for (const char* field : {"image_column", "label_column", "label_type"}) add_field(command, columns, {field});
  if (further) add_field(command, columns, {"columns"});
}

std::string report_reading(std::string reading, bool columns_option) {
  if (columns_option && reading.find("left out of each record") != std::string::npos)
    reading += "; --columns takes them along";
  print(stderr, "headrace: reading {}\n", reading);
  return reading;
}

}  // namespace headrace::tools
