#include "headrace/tools/options/data_options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>

#include "headrace/devices/base/error.h"
#include "headrace/tools/output/print.h"

namespace headrace::tools {
namespace {

// An empty name would be passed over in silence.
const auto kNamed = [](const std::string& given) {
  return given.empty() ? std::string("is empty: give a name") : std::string();
};

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

void add_column_options(CLI::App& command, ColumnOptions& columns, bool further) {
  command
      .add_option("--image-column", columns.image,
                  "the column of a CSV table (without it, path), feature of TFRecords (image/encoded or image) or "
                  "member of a WebDataset's samples (jpg, jpeg or png) that is the image")
      ->check(kNamed)
      ->type_name("NAME");
  command
      .add_option("--label-column", columns.label,
                  "the column (without it, label), feature (image/class/label or label) or member (cls, or else "
                  "json.label) that is the label")
      ->check(kNamed)
      ->type_name("NAME");
  command
      .add_option_function<std::string>(
          "--label-type", [&columns](const std::string& name) { columns.label_type = parse_label_type(name); },
          "what labels are: class, each value one of them; number, float32 for regression; without it, "
          "integers and names are classes, and other numbers are refused")
      ->type_name("TYPE");
  if (!further) return;
  command
      .add_option(
          "--columns", columns.more,
          "columns, features, or members of a sample by their extension (txt, seg.png:mask, json.KEY), to take "
          "along as fields: A,B; text as A:text, names of classes as A:class, several columns of numbers as "
          "one field: F=A+B; of images in folders also by path: mask=../masks/{stem}_mask.png:mask")
      ->delimiter(',')
      ->type_name("NAMES");
}

std::string report_reading(std::string reading, bool columns_option) {
  if (columns_option && reading.find("left out of each record") != std::string::npos)
    reading += "; --columns takes them along";
  print(stderr, "headrace: reading {}\n", reading);
  return reading;
}

}  // namespace headrace::tools
