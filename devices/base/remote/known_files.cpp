#include "headrace/devices/base/remote/known_files.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "headrace/devices/base/remote.h"
#include "headrace/devices/base/remote/access.h"

namespace headrace::remote {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kHolds{5};
constexpr std::uint64_t kMaxHeads = std::uint64_t{16} << 20;  // bytes of the latest, which are kept

std::string key_of(const std::string& url) {
  return is_store_url(url) ? store_access(parse_url(url).scheme).endpoint + " " + url : url;
}

}  // namespace

KnownFiles& known_files() {
  static KnownFiles* const one = new KnownFiles;  // threads may still read while the process ends
  return *one;
}

std::span<const DirectoryEntry> files_with(const std::string& text, std::span<const DirectoryEntry> files) {
  const auto start = [&](const DirectoryEntry& file) {
    return std::string_view(file.path.native()).substr(0, text.size());
  };
  const auto found = std::ranges::equal_range(files, std::string_view(text), {}, start);
  return {found.begin(), found.end()};
}

bool KnownFiles::holds(Time when) const {
  return Clock::now() - when < kHolds || (holders_ > 0 && when >= since_);
}

void KnownFiles::drop_head(Entry& entry) {
  heads_ -= entry.found.head.size();
  entry.found.head = {};
}

void KnownFiles::drop(FoundFiles::iterator found) {
  drop_head(found->second);
  found_.erase(found);
}

// Drops what holds no more, once in a while: there may be very many.
void KnownFiles::drop_old() {
  if (Clock::now() - dropped_ < kHolds) return;
  dropped_ = Clock::now();
  for (auto at = found_.begin(); at != found_.end();) {
    const auto one = at++;
    if (!holds(one->second.when)) drop(one);
  }
  std::erase_if(order_, [&](const std::string& key) { return !found_.contains(key); });
}

void KnownFiles::note(const std::string& url, Found found) {
  const std::string key = key_of(url);
  const std::lock_guard lock(mutex_);
  drop_old();
  if (const auto had = found_.find(key); had != found_.end()) drop(had);
  heads_ += found.head.size();
  order_.push_back(key);
  found_[key] = {.found = std::move(found)};
  while (heads_ > kMaxHeads) {
    if (const auto oldest = found_.find(order_.front()); oldest != found_.end()) drop_head(oldest->second);
    order_.pop_front();
  }
}

std::optional<KnownFiles::Found> KnownFiles::find(const std::string& url) {
  const std::string key = key_of(url);
  const std::lock_guard lock(mutex_);
  const auto found = found_.find(key);
  if (found == found_.end()) return std::nullopt;
  if (holds(found->second.when)) return found->second.found;
  drop(found);
  return std::nullopt;
}

void KnownFiles::forget(const std::string& url) {
  const std::string key = key_of(url);
  const std::lock_guard lock(mutex_);
  listed_.erase(key);
  if (const auto found = found_.find(key); found != found_.end()) drop(found);
}

void KnownFiles::forget_written(const std::string& url) {
  forget(url);
  const std::string key = key_of(url);
  const std::lock_guard lock(mutex_);
  std::erase_if(folders_, [&](const auto& folder) { return key.starts_with(folder.first); });
}

bool KnownFiles::still_holds(Time when) {
  const std::lock_guard lock(mutex_);
  return holds(when);
}

void KnownFiles::hold() {
  const std::lock_guard lock(mutex_);
  if (holders_++ == 0) since_ = Clock::now();
}

void KnownFiles::release() noexcept {
  const std::lock_guard lock(mutex_);
  --holders_;
}

KnownFiles::Below KnownFiles::note_below(const std::string& folder, std::vector<DirectoryEntry> files) {
  const auto listing = std::make_shared<const std::vector<DirectoryEntry>>(std::move(files));
  const std::string key = key_of(folder);
  const std::lock_guard lock(mutex_);
  std::erase_if(folders_, [&](const auto& one) { return !holds(one.second.when); });
  folders_.insert_or_assign(key, Folder{.listing = listing});
  return {.listing = listing, .files = *listing};
}

std::optional<KnownFiles::Below> KnownFiles::find_below(const std::string& folder) {
  const std::string wanted = key_of(folder);
  const std::lock_guard lock(mutex_);
  for (const auto& [key, one] : folders_) {
    if (wanted.starts_with(key) && holds(one.when))
      return Below{.listing = one.listing, .files = files_with(folder, *one.listing)};
  }
  return std::nullopt;
}

void KnownFiles::note_listed(const std::string& url, Listing listing) {
  const std::string key = key_of(url);
  const std::lock_guard lock(mutex_);
  listed_.insert_or_assign(key, std::move(listing));
}

std::optional<KnownFiles::Listing> KnownFiles::find_listed(const std::string& url) {
  const std::string key = key_of(url);
  const std::lock_guard lock(mutex_);
  const auto found = listed_.find(key);
  return found == listed_.end() ? std::nullopt : std::optional(found->second);
}

void KnownFiles::forget_listed(const std::string& url) {
  const std::string key = key_of(url);
  const std::lock_guard lock(mutex_);
  listed_.erase(key);
}

void KnownFiles::put_ahead(const std::string& url, std::shared_ptr<RemoteFile> file) {
  const std::lock_guard lock(mutex_);
  ahead_.emplace(url, std::move(file));
}

std::shared_ptr<RemoteFile> KnownFiles::take_ahead(const std::string& url) {
  const std::lock_guard lock(mutex_);
  const auto found = ahead_.find(url);
  if (found == ahead_.end()) return nullptr;
  std::shared_ptr<RemoteFile> file = std::move(found->second);
  ahead_.erase(found);
  return file;
}

void KnownFiles::drop_ahead() noexcept {
  std::map<std::string, std::shared_ptr<RemoteFile>> dropped;
  const std::lock_guard lock(mutex_);
  dropped.swap(ahead_);
}

}  // namespace headrace::remote
