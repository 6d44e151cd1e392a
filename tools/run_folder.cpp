#include "headrace/tools/run_folder.h"

#include <algorithm>
#include <array>
#include <string>
#include <system_error>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"

namespace headrace::tools {
namespace {

bool holds_run(const std::filesystem::path& folder) {
  return std::ranges::any_of(std::array{kHistoryFile, kModelFile, kPlanFile},
                             [&](const char* name) { return path_kind(folder / name) != PathKind::kMissing; });
}

}  // namespace

std::filesystem::path make_run_folder(const std::filesystem::path& folder) {
  make_folders(folder);
  if (!holds_run(folder)) return folder;
  for (int number = 2;; ++number) {
    const std::filesystem::path next = folder / ("run-" + std::to_string(number));
    std::error_code error;
    if (std::filesystem::create_directory(next, error)) return next;  // false where it exists
    if (error && error != std::errc::file_exists) {
      throw DataError(ErrorCode::kIo, "cannot make the folder: " + error.message(), {.source = next.string()},
                      "check the permissions of the folder, or name another --run-dir");
    }
  }
}

}  // namespace headrace::tools
