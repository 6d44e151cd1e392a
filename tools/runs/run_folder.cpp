#include "headrace/tools/runs/run_folder.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <system_error>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"

namespace headrace::tools {
namespace {

bool holds_run(const std::filesystem::path& folder) {
  return std::ranges::any_of(kRunFiles, [&](const char* name) {
    std::error_code ignored;  // a link that leads nowhere is there, too: it would be written through
    return std::filesystem::exists(std::filesystem::symlink_status(folder / name, ignored));
  });
}

}  // namespace

RunFolder::RunFolder(const std::filesystem::path& folder) : path_(folder) {
  made_ = path_kind(folder) == PathKind::kMissing;
  make_folders(folder);
  if (!holds_run(folder)) return;
  made_ = true;
  for (int number = 2;; ++number) {
    path_ = folder / (kNumberedRun + std::to_string(number));
    std::error_code error;
    if (std::filesystem::create_directory(path_, error)) return;  // false where it exists
    if (error && error != std::errc::file_exists) {
      throw DataError(ErrorCode::kIo, "cannot make the folder: " + error.message(), {.source = path_.string()},
                      "check the permissions of the folder, or name another --run-dir");
    }
  }
}

RunFolder::~RunFolder() {
  std::error_code not_empty;
  if (made_) std::filesystem::remove(path_, not_empty);
}

namespace {

bool is_plain(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
         std::string_view("-_./:,=+@%").find(letter) != std::string_view::npos;
}

std::string quoted(const std::string& text) {
  if (!text.empty() && std::ranges::all_of(text, is_plain)) return text;
  std::string safe = "'";
  for (const char letter : text) letter == '\'' ? safe += "'\\''" : safe += letter;
  return safe + "'";
}

std::string path_to(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return (parent == nullptr ? std::string() : path_to(*parent) + " ") + command.get_name();
}

}  // namespace

std::string typed_command(const CLI::App& command) {
  std::string line = path_to(command);
  for (const CLI::Option* option : command.parse_order()) {
    if (option->nonpositional()) line.append(" ").append(option->get_name());
    if (option->get_items_expected_max() == 0) continue;
    for (const std::string& value : option->results()) line.append(" ").append(quoted(value));
  }
  return line;
}

}  // namespace headrace::tools
