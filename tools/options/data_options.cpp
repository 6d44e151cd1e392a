#include "headrace/tools/options/data_options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>

#include "headrace/devices/base/error.h"
#include "headrace/tools/output/print.h"

namespace headrace::tools {

namespace {

// Standard input has a path of its own. Returns what is wrong with it, as a validator does: nothing.
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
          .add_option("--data", data,
                      "a folder, archive, file or pipe, - for standard input; its format is recognised by content")
          ->type_name("PATH")
          ->transform(CLI::Validator([](std::string& path) { return standard_input_for_dash(path); }, ""));
  command
      .add_option("--classes-at", layout.classes_at,
                  "which folder names the class of an image: its number from the top, parent, none, or a pattern "
                  "such as 'photos/*/{class}' or '{class}/{split}'; without it, Headrace finds out")
      ->type_name("LEVEL");
  command
      .add_option("--train-folder", layout.train_folder,
                  "the folder with the images of the train split, where it is not called train or training")
      ->type_name("NAME");
  command
      .add_option("--test-folder", layout.test_folder,
                  "the folder with the images of the test split, where it is not called test, testing or val")
      ->type_name("NAME");
  return option;
}

void report_left_out(const std::vector<LeftOut>& left_out) {
  if (!left_out.empty()) print(stderr, "headrace: {}\n", describe(left_out));
}

}  // namespace headrace::tools
