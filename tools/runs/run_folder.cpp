#include "headrace/tools/runs/run_folder.h"

#include <algorithm>
#include <string>
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

}  // namespace headrace::tools
