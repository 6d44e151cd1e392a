#include "headrace/train/records/checkpoint_folder.h"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/train/records/checkpoint_name.h"

namespace headrace {
namespace {

// A file that appears is locked a moment later: younger ones are left alone.
constexpr std::chrono::seconds kYoung{60};

bool is_checkpoint_name(const std::string& name) { return name.ends_with(kCheckpointSuffix); }

// "NAME.safetensors.PROCESS.NUMBER.tmp"
bool is_unfinished_name(const std::string& name) {
  return name.ends_with(".tmp") && name.find(std::string(kCheckpointSuffix) + ".") != std::string::npos;
}

bool is_young(const DirectoryEntry& entry) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::nanoseconds(entry.modified_ns) + kYoung > now;
}

// Nothing for what is damaged, of another kind or has gone meanwhile.
std::optional<Record> opened(const std::filesystem::path& path) {
  try {
    return Record(path);
  } catch (const DataError&) {
    return std::nullopt;
  }
}

std::tuple<std::uint64_t, int, std::uint64_t> progress_of(const Record& record) {
  const TrainingPosition at = record.training() ? record.training()->position : TrainingPosition{};
  return {record.step(), at.epoch, at.epoch_step};
}

bool is_complete(const Record& record) {
  try {
    record.verify();
    return true;
  } catch (const DataError&) {
    return false;
  }
}

}  // namespace

std::optional<Record> open_newest_checkpoint(const std::filesystem::path& folder) {
  if (path_kind(folder) != PathKind::kDirectory) return std::nullopt;
  std::vector<Record> records;
  for (const DirectoryEntry& entry : list_directory(folder)) {
    if (entry.is_directory || !is_checkpoint_name(entry.path.filename().string())) continue;
    if (std::optional<Record> record = opened(entry.path)) records.push_back(*std::move(record));
  }
  std::ranges::stable_sort(records, std::ranges::greater{}, progress_of);
  const auto newest = std::ranges::find_if(records, is_complete);
  if (newest == records.end()) return std::nullopt;
  return std::move(*newest);
}

KeptCheckpoints::KeptCheckpoints(const std::filesystem::path& folder, const std::string& run, int keep)
    : keep_(keep) {
  make_folders(folder);
  for (const DirectoryEntry& entry : list_directory(folder)) {
    const std::string name = entry.path.filename().string();
    if (is_unfinished_name(name) && !is_young(entry) && !is_being_written(entry.path)) remove_file(entry.path);
    if (!is_checkpoint_name(name) || name == kBestCheckpoint) continue;
    const std::optional<Record> record = opened(entry.path);
    if (record && record->training() && record->training()->position.run == run) {
      steps_[entry.path] = record->step();
    }
  }
}

void KeptCheckpoints::add(const std::filesystem::path& file, std::uint64_t step) {
  steps_[file] = step;
  while (keep_ > 0 && steps_.size() > static_cast<std::size_t>(keep_)) {
    const auto oldest = std::ranges::min_element(steps_, {}, [](const auto& each) { return each.second; });
    remove_file(oldest->first);
    steps_.erase(oldest);
  }
}

}  // namespace headrace
