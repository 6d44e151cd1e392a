#include "headrace/tools/report/run_choice.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/tools/report/json_values.h"
#include "headrace/tools/report/run_reading.h"
#include "headrace/tools/runs/run_folder.h"

namespace headrace::tools {
namespace {

bool holds_files_of_run(const std::filesystem::path& folder) {
  return std::ranges::any_of(kRunFiles,
                             [&](const char* name) { return path_kind(folder / name) == PathKind::kFile; });
}

// Returns the number in the name of a folder named by RunFolder.
std::optional<std::uint64_t> number_in(const std::string& name) {
  const std::string_view prefix = kNumberedRun;
  if (!name.starts_with(prefix)) return std::nullopt;
  std::uint64_t number = 0;
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + prefix.size(), end, number);
  return parsed.ec == std::errc() && parsed.ptr == end ? std::optional(number) : std::nullopt;
}

std::string begin_of(const NumberedFolder& run) { return text_at(read_object(run.path / kRunFile), "started"); }

}  // namespace

std::vector<NumberedFolder> runs_in(const std::filesystem::path& folder) {
  if (path_kind(folder) == PathKind::kMissing) {
    throw DataError(ErrorCode::kNotFound, "there is no such folder", {.source = folder.string()},
                    "name the folder that headrace train --run-dir wrote");
  }
  if (path_kind(folder) != PathKind::kDirectory) {
    throw DataError(ErrorCode::kInvalidArgument, "this is no folder", {.source = folder.string()},
                    "name the folder that headrace train --run-dir wrote");
  }
  std::vector<NumberedFolder> runs;
  if (holds_files_of_run(folder)) runs.push_back({.number = 1, .path = folder});
  for (const DirectoryEntry& entry : list_directory(folder)) {
    const auto number = number_in(entry.path.filename().string());
    if (entry.is_directory && number && holds_files_of_run(entry.path)) {
      runs.push_back({.number = *number, .path = folder / entry.path.filename()});
    }
  }
  if (runs.empty()) {
    throw DataError(ErrorCode::kNotFound, "the folder holds no run of headrace train", {.source = folder.string()},
                    "name the folder that headrace train --run-dir wrote; it has a history.jsonl");
  }
  std::ranges::sort(runs, {}, &NumberedFolder::number);
  return runs;
}

const NumberedFolder& newest_of(const std::vector<NumberedFolder>& runs) {
  return *std::ranges::max_element(runs, {},
                                   [](const NumberedFolder& run) { return std::pair(begin_of(run), run.number); });
}

}  // namespace headrace::tools
