#include "headrace/tools/options/data_options.h"

#include <CLI/CLI.hpp>
#include <cstdio>

namespace headrace::tools {

CLI::Option* add_data_options(CLI::App& command, std::filesystem::path& data, LayoutOptions& layout) {
  CLI::Option* option =
      command.add_option("--data", data, "a folder, archive, file or pipe; its format is recognised by content")
          ->type_name("PATH");
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
  if (!left_out.empty()) std::fprintf(stderr, "headrace: %s\n", describe(left_out).c_str());
}

}  // namespace headrace::tools
