#include "headrace/devices/base/remote/fetch_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <new>
#include <thread>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file_lock.h"
#include "headrace/devices/base/mapped_file.h"
#include "headrace/devices/base/text.h"

namespace headrace::remote {
namespace {

using std::chrono::hours, std::chrono::milliseconds, std::chrono::seconds;

constexpr std::uint64_t kFiles = 8;  // of the budget: what is removed at once
constexpr std::uint64_t kMinBudget = std::uint64_t{16} << 20, kMaxFileBytes = std::uint64_t{1} << 43;
constexpr std::size_t kMaxStores = 512;  // that wait for the disk
constexpr milliseconds kLook{2}, kLockWait{1000};
constexpr seconds kRenew{1}, kFull{10};
constexpr hours kUnused{24};  // after which a file may be removed for others' data
constexpr std::string_view kExtension = ".pieces";
constexpr std::size_t kDigits = 6;  // of its name

std::atomic<std::uint64_t> bytes_read{0};

bool is_of_cache(const std::filesystem::path& path) {
  const std::string stem = path.stem().string();
  return path.extension() == kExtension && stem.size() == kDigits &&
         stem.find_first_not_of("0123456789") == std::string::npos;
}

void check(const FetchCacheOptions& options) {
  if (options.budget_bytes < kMinBudget) {
    throw ConfigError(
        fmt::format("the fetch cache's budget is {} bytes", options.budget_bytes),
        fmt::format("give it a part of the disk, such as 500G, and no less than {}M", kMinBudget >> 20));
  }
  make_folders(options.folder);
  if (is_shared_by_hosts(options.folder)) {
    throw ConfigError(fmt::format("'{}' lies on a file system that several hosts share", options.folder.string()),
                      "name a folder on a local disk for the fetch cache");
  }
}

FetchCacheOptions options_of_environment() {
  const char* const folder = std::getenv("HEADRACE_FETCH_CACHE");
  if (folder == nullptr || *folder == '\0') return {};
  const char* const budget = std::getenv("HEADRACE_FETCH_BUDGET");
  if (budget == nullptr) {
    throw ConfigError("HEADRACE_FETCH_CACHE names a folder, and HEADRACE_FETCH_BUDGET is not set",
                      "set it to the bytes that the folder may have, such as 500G");
  }
  const std::optional<std::uint64_t> bytes = parse_size(budget);
  if (!bytes) {
    throw ConfigError(fmt::format("HEADRACE_FETCH_BUDGET is '{}'", budget),
                      "it must be a whole number of bytes, such as 4096M or 500G");
  }
  return {.folder = folder, .budget_bytes = *bytes};
}

// What set_fetch_cache() or the environment said.
struct Settings {
  std::mutex mutex;
  // By mutex.
  std::optional<FetchCacheOptions> options;
  std::vector<std::unique_ptr<FetchCache>> all;
  FetchCache* cache = nullptr;
  pid_t process = 0;

  void decide(FetchCacheOptions chosen) {
    FetchCache* now = nullptr;
    if (!chosen.folder.empty()) {
      check(chosen);
      all.push_back(std::make_unique<FetchCache>(chosen));
      now = all.back().get();
    }
    cache = now;
    options = std::move(chosen);
    process = ::getpid();
  }
};

Settings& settings() {
  static Settings* const one = new Settings;  // never destroyed, as the client
  return *one;
}

}  // namespace

void set_fetch_cache(const FetchCacheOptions& options) {
  const std::lock_guard lock(settings().mutex);
  settings().decide(options);
}

FetchCache* FetchCache::of_process() {
  Settings& now = settings();
  const std::lock_guard lock(now.mutex);
  if (!now.options) now.decide(options_of_environment());
  if (now.process != ::getpid()) now.decide(*now.options);
  return now.cache;
}

std::uint64_t cached_bytes() noexcept { return bytes_read.load(); }

FetchCache::FetchCache(const FetchCacheOptions& options)
    : folder_(options.folder),
      budget_(options.budget_bytes),
      file_bytes_(std::min(options.budget_bytes / kFiles, kMaxFileBytes)) {
  const FolderLock lock(folder_, kLockWait);
  scan();
}

// Opens the files that others have made, and forgets those that they have removed.
void FetchCache::scan() {
  std::vector<std::filesystem::path> found;
  for (const DirectoryEntry& entry : list_directory(folder_)) {
    if (is_left_over(entry)) remove_file(entry.path);
    if (entry.is_directory || !is_of_cache(entry.path)) continue;
    found.push_back(entry.path);
    const auto is_it = [&](const auto& file) { return file->path() == entry.path; };
    if (std::ranges::any_of(files_, is_it)) continue;
    try {
      files_.push_back(std::make_unique<PieceFile>(entry.path));
    } catch (const DataError& error) {
      if (error.code() != ErrorCode::kDataCorrupt) throw;
      if (PieceFile::is_one(entry.path)) remove_file(entry.path);  // any other is its owner's
      found.pop_back();
    }
  }
  for (std::size_t i = files_.size(); i-- > 0;) {
    if (std::ranges::find(found, files_[i]->path()) == found.end()) forget(*files_[i]);
  }
}

void FetchCache::forget(const PieceFile& file) {
  const auto found = std::ranges::find(files_, &file, [](const auto& one) { return one.get(); });
  gone_.push_back(std::move(*found));
  files_.erase(found);
}

// Removes files that no process has used for a day, the longest unused first, until `wanted` bytes fit.
void FetchCache::remove_unused(std::uint64_t wanted) {
  std::uint64_t all = wanted;
  std::vector<std::pair<std::uint64_t, PieceFile*>> by_use;
  for (const auto& file : files_) {
    all += file->bytes();
    by_use.emplace_back(look_at_file(file->path()).modified_ns, file.get());
  }
  std::ranges::sort(by_use);
  const std::uint64_t now = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
  for (const auto& [used_ns, file] : by_use) {
    if (all <= budget_ || used_ns + static_cast<std::uint64_t>(std::chrono::nanoseconds(kUnused).count()) > now)
      return;
    if (!MappedFile::remove_unused(file->path())) continue;
    all -= file->bytes();
    forget(*file);
  }
}

PieceFile* FetchCache::file_with_room(std::uint64_t size) noexcept {
  for (auto file = files_.rbegin(); file != files_.rend(); ++file) {
    if ((*file)->has_room(size)) return file->get();
  }
  return nullptr;
}

bool FetchCache::make_room() noexcept {
  const Time now = std::chrono::steady_clock::now();
  if (now < full_until_) return false;
  full_until_ = now + kFull;
  try {
    const FolderLock lock(folder_, kLockWait);
    if (!lock.held()) return false;
    scan();
    if (file_with_room(kPieceBytes) == nullptr) {
      remove_unused(file_bytes_);
      std::uint64_t all = file_bytes_, number = 0;
      for (const auto& file : files_) all += file->bytes();
      if (all > budget_) return false;
      std::filesystem::path path;
      do {
        path = folder_ / fmt::format("{:0{}}{}", ++number, kDigits, kExtension);
      } while (path_kind(path) != PathKind::kMissing);
      PieceFile::create(path, file_bytes_);
      files_.push_back(std::make_unique<PieceFile>(path));
    }
    full_until_ = {};
    return true;
  } catch (const std::exception& error) {
    warn_once(error);
    return false;
  }
}

// Warns once.
void FetchCache::warn_once(const std::exception& error) noexcept {
  full_until_ = std::chrono::steady_clock::now() + kFull;
  if (std::exchange(told_, true)) return;
  std::fprintf(stderr, "headrace: warning: the fetch cache keeps no more for now: %s\n",
               printable(error.what()).c_str());
}

PiecePlace FetchCache::find(const PieceName& name) noexcept {
  for (const auto& file : files_) {
    if (PieceSlot* const slot = file->find(name.key)) return {.file = file.get(), .slot = slot};
  }
  return {};
}

PieceStatus FetchCache::look(const PieceName& name) noexcept {
  const std::lock_guard lock(mutex_);
  if (const PiecePlace place = find(name); place.slot != nullptr) return place.file->look(*place.slot);
  if (std::chrono::steady_clock::now() < full_until_) return PieceStatus::kNoRoom;
  return file_with_room(name.size) != nullptr || make_room() ? PieceStatus::kFree : PieceStatus::kNoRoom;
}

// Gives the piece a slot, or finds it in a file that another process has made meanwhile.
bool FetchCache::find_room(const PieceName& name, PiecePlace& place) noexcept {
  while (place.slot == nullptr) {
    if (std::chrono::steady_clock::now() < full_until_) return false;
    if (file_with_room(name.size) == nullptr && !make_room()) return false;
    place = find(name);
    if (place.slot != nullptr) return true;
    place.file = file_with_room(name.size);
    if (place.file == nullptr) return false;
    place.slot = place.file->add(name);  // null where the table is full, which then has no room
  }
  return true;
}

PieceStatus FetchCache::claim(const PieceName& name, PiecePlace& place) noexcept {
  const std::lock_guard lock(mutex_);
  place = find(name);
  if (place.slot == nullptr && !find_room(name, place)) return PieceStatus::kNoRoom;
  if (!place.file->use()) {
    forget(*place.file);
    return PieceStatus::kNoRoom;
  }
  const PieceStatus status = place.file->claim(*place.slot, name.size);
  if (status == PieceStatus::kStored) place.file->will_load(*place.slot);
  if (status == PieceStatus::kClaimed) {
    claims_.emplace(place.slot, place.file);
    wake();
  }
  return status;
}

bool FetchCache::load(const PieceName& name, const PiecePlace& place, std::span<std::byte> into) noexcept {
  if (place.file->load(*place.slot, name, into)) {
    bytes_read += into.size();
    return true;
  }
  place.file->discard(*place.slot);
  return false;
}

bool FetchCache::store(const PieceName& name, const PiecePlace& place, std::span<const std::byte> bytes) noexcept {
  try {
    place.file->store(*place.slot, name, bytes);
  } catch (const std::exception& error) {
    give_up(place);
    const std::lock_guard lock(mutex_);
    warn_once(error);
    return false;
  }
  const std::lock_guard lock(mutex_);
  claims_.erase(place.slot);
  return true;
}

void FetchCache::give_up(const PiecePlace& place) noexcept {
  place.file->release(*place.slot);
  const std::lock_guard lock(mutex_);
  claims_.erase(place.slot);
}

bool FetchCache::store_soon(std::shared_ptr<PieceUser> user) {
  const std::lock_guard lock(mutex_);
  if (stores_.size() >= kMaxStores) return false;
  stores_.push_back(std::move(user));
  wake();
  return true;
}

void FetchCache::watch(const std::shared_ptr<PieceUser>& user) {
  const std::lock_guard lock(mutex_);
  watched_.push_back(user);
  wake();
}

void FetchCache::wake() {
  if (!std::exchange(runs_, true)) std::thread([this] { run(); }).detach();
  changed_.notify_one();
}

void FetchCache::run() noexcept {
  sigset_t all;  // signals are others' to handle
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  std::unique_lock lock(mutex_);
  while (true) {
    if (stores_.empty() && watched_.empty() && claims_.empty()) {
      changed_.wait(lock);
    } else if (stores_.empty()) {
      changed_.wait_for(lock, watched_.empty() ? milliseconds(kRenew) : kLook);
    }
    const Time now = std::chrono::steady_clock::now();
    if (now - renewed_ >= kRenew) {
      renewed_ = now;
      for (const auto& [slot, file] : claims_) file->renew(*slot);
    }
    std::deque<std::shared_ptr<PieceUser>> stores = std::exchange(stores_, {});
    std::vector<std::weak_ptr<PieceUser>> watched = std::exchange(watched_, {});
    lock.unlock();
    for (const auto& user : stores) user->store_piece();
    stores.clear();
    std::erase_if(watched, [](const auto& one) {
      const auto user = one.lock();
      return user == nullptr || user->look_again();
    });
    lock.lock();
    std::ranges::move(watched, std::back_inserter(watched_));
  }
}

}  // namespace headrace::remote
