#include "headrace/train/records/checkpoint_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/failures.h"
#include "headrace/devices/base/file_lock.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/text.h"

namespace headrace {
namespace {

// Time for a training that was told to end to write its last checkpoint, and for a killed one to disappear.
constexpr std::chrono::seconds kUntilFree{5};

bool is_checkpoint_name(const std::string& name) { return name.ends_with(kCheckpointSuffix); }

std::vector<DirectoryEntry> checkpoint_files(const std::filesystem::path& folder) {
  if (path_kind(folder) != PathKind::kDirectory) return {};
  std::vector<DirectoryEntry> files = list_directory(folder);
  std::erase_if(files, [](const DirectoryEntry& entry) {
    return entry.is_directory || !is_checkpoint_name(entry.path.filename().string());
  });
  return files;
}

// Returns std::nullopt if it cannot be read and sets `why`, which stays empty for a file that is not a checkpoint
// or that was removed meanwhile.
std::optional<Record> opened(const std::filesystem::path& path, std::string& why) {
  why.clear();
  try {
    return Record(path);
  } catch (const DataError& error) {
    if (error.code() != ErrorCode::kNotFound && !is_other_tensor_file(path)) why = error.message();
    return std::nullopt;
  }
}

std::tuple<std::uint64_t, int, std::uint64_t> progress_of(const Record& record) {
  const TrainingPosition at = record.training() ? record.training()->position : TrainingPosition{};
  return {record.step(), at.epoch, at.epoch_step};
}

[[noreturn]] void refuse_all(const std::filesystem::path& folder,
                             const std::vector<UnreadableCheckpoint>& unreadable) {
  std::string text = fmt::format("holds {}, none of which can be read", count_of(unreadable.size(), "checkpoint"));
  for (const UnreadableCheckpoint& each : unreadable) text += "; " + each.why;
  throw DataError(ErrorCode::kDataCorrupt, text, {.source = folder.string()},
                  "restore one of them from a copy; or name another folder, to begin anew");
}

[[noreturn]] void refuse_name(const std::string& pattern, const std::string& why, const std::string& hint = {}) {
  throw ConfigError(fmt::format("the name of checkpoints, '{}', {}", pattern, why), hint);
}

std::string number_text(double value, const std::string& format) {
  const auto whole = static_cast<long long>(value);
  if (format.empty() && static_cast<double>(whole) == value) return fmt::format("{}", whole);
  return fmt::format(fmt::runtime("{:" + format + "}"), value);
}

// Returns the text for a placeholder, given without its braces.
std::string place_text(const std::string& pattern, const std::string& place, const NameValues& values) {
  const std::size_t colon = place.find(':');
  const std::string name = place.substr(0, colon);
  const auto found = std::ranges::find(values, name, &NameValues::value_type::first);
  if (found == values.end()) {
    std::string names;
    for (const auto& [each, value] : values) names += (names.empty() ? "" : ", ") + each;
    refuse_name(pattern, "asks for {" + name + "}", "there are " + names);
  }
  if (!found->second) return "none";
  try {
    return number_text(*found->second, colon == std::string::npos ? "" : place.substr(colon + 1));
  } catch (const fmt::format_error& error) {
    refuse_name(pattern, fmt::format("has the format '{}': {}", place, error.what()));
  }
}

}  // namespace

FoundCheckpoint find_newest_checkpoint(const std::filesystem::path& folder, bool trained) {
  FoundCheckpoint found;
  std::vector<Record> records;
  std::string why;
  for (const DirectoryEntry& entry : checkpoint_files(folder)) {
    std::optional<Record> record = opened(entry.path, why);
    if (!why.empty()) found.unreadable.push_back({.file = entry.path, .why = why});
    if (record && (!trained || record->training())) records.push_back(*std::move(record));
  }
  std::ranges::stable_sort(records, std::ranges::greater{}, progress_of);
  for (Record& record : records) {
    try {
      record.verify();
      found.record = std::move(record);
      return found;
    } catch (const DataError& error) {
      found.unreadable.push_back({.file = record.file().path(), .why = error.message()});
    }
  }
  if (!found.unreadable.empty()) refuse_all(folder, found.unreadable);
  return found;
}

void warn_of(const std::vector<UnreadableCheckpoint>& unreadable, std::FILE* output) {
  for (const UnreadableCheckpoint& each : unreadable) {
    fmt::print(output, "headrace: warning: passing over a checkpoint: {}\n", each.why);
  }
  std::fflush(output);
}

std::vector<std::filesystem::path> checkpoints_of_others(const std::filesystem::path& folder,
                                                         const std::string& run) {
  std::vector<std::filesystem::path> others;
  std::string why;
  for (const DirectoryEntry& entry : checkpoint_files(folder)) {
    const std::optional<Record> record = opened(entry.path, why);
    const bool trained = record && record->training() && record->training()->position.run != run;
    if (trained || !why.empty()) others.push_back(entry.path);
  }
  return others;
}

TrainingFolder::TrainingFolder(const std::filesystem::path& folder) : folder_(folder) {
  make_folders(folder);
  lock_ = std::make_unique<FolderLock>(folder, kUntilFree);
  if (lock_->is_anothers()) {
    throw DataError(ErrorCode::kIo, "another training keeps its checkpoints there, and still runs",
                    {.source = folder.string()}, "wait until it has ended, or name another folder");
  }
  for (const DirectoryEntry& entry : list_directory(folder)) {
    const bool ours =
        entry.path.filename().string().find(std::string(kCheckpointSuffix) + ".") != std::string::npos;
    if (ours && is_left_over(entry)) remove_file(entry.path);
  }
  // Checked before the work: the folder may not be writable.
  const FileWriter probe(folder / (std::string("checkpoint") + kCheckpointSuffix), Appears::kWhole,
                         Links::kReplaced);
}

void TrainingFolder::require_unused(const std::string& run) const {
  const std::size_t others = checkpoints_of_others(folder_, run).size();
  if (others == 0) return;
  throw ConfigError(
      fmt::format("{} holds {} of an earlier training", folder_.string(), count_of(others, "checkpoint")),
      "resume to go on with it, or name another folder");
}

KeptCheckpoints::KeptCheckpoints(const std::filesystem::path& folder, const std::string& run, int keep)
    : keep_(keep) {
  std::string why;
  for (const DirectoryEntry& entry : checkpoint_files(folder)) {
    if (entry.is_link || entry.path.filename() == kBestCheckpoint) continue;
    const std::optional<Record> record = opened(entry.path, why);
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

std::string checkpoint_name(const std::string& pattern, const NameValues& values) {
  std::string name;
  std::size_t at = 0;
  while (at < pattern.size()) {
    const std::size_t open = pattern.find_first_of("{}", at);
    name += pattern.substr(at, open - at);
    if (open == std::string::npos) break;
    const std::size_t close = pattern[open] == '{' ? pattern.find('}', open) : std::string::npos;
    if (close == std::string::npos) refuse_name(pattern, "has a brace without its partner");
    name += place_text(pattern, pattern.substr(open + 1, close - open - 1), values);
    at = close + 1;
  }
  if (name.empty() || name.find('/') != std::string::npos) {
    refuse_name(pattern, "is no name of a file",
                advice("name the folder with {}", named("CheckpointOptions::folder")));
  }
  return name.ends_with(kCheckpointSuffix) ? name : name + kCheckpointSuffix;
}

CheckpointWriter::CheckpointWriter(bool asynchronous) : asynchronous_(asynchronous) {
  if (asynchronous) thread_ = start_thread("writing checkpoints", [this] { run(); });
}

CheckpointWriter::~CheckpointWriter() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CheckpointWriter::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return !work_.empty() || ending_; });
    if (work_.empty()) return;
    if (!failed_) {
      const std::function<void()>& work = work_.front();  // a deque does not move it while others are added
      lock.unlock();
      std::exception_ptr failure;
      try {
        work();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      failed_ = failure != nullptr;
      failure_ = failure;
    }
    work_.pop_front();
    changed_.notify_all();
  }
}

void CheckpointWriter::rethrow(std::unique_lock<std::mutex>& lock) {
  if (!failure_) return;
  const std::exception_ptr failure = std::exchange(failure_, nullptr);
  lock.unlock();
  std::rethrow_exception(failure);
}

std::size_t CheckpointWriter::unfinished() {
  std::unique_lock lock(mutex_);
  rethrow(lock);
  return work_.size();
}

void CheckpointWriter::add(std::function<void()> work) {
  if (!asynchronous_) return work();
  {
    std::unique_lock lock(mutex_);
    rethrow(lock);
    work_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void CheckpointWriter::wait_until(std::size_t left) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return work_.size() <= left; });
  rethrow(lock);
}

}  // namespace headrace
