#include "headrace/pipeline/sources/index_set.h"

#include <array>
#include <chrono>
#include <string_view>

#include "headrace/devices/base/byte_io.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/devices/base/hash.h"
#include "headrace/devices/base/remote.h"
#include "headrace/pipeline/sources/bytes.h"

namespace headrace {
namespace {

using SetClock = std::chrono::steady_clock;

constexpr std::string_view kSetMagic("\x89HDRX\r\n\x1A", 8);
constexpr std::uint32_t kSetVersion = 1;
constexpr std::uint64_t kHead = 12, kTrailer = 24;
constexpr std::uint64_t kMaxDirectory = std::uint64_t{1} << 30;  // bytes
constexpr std::chrono::seconds kHeld{5};                         // as long as a listing

std::mutex collecting;
IndexCollector* collector = nullptr;  // by `collecting`

}  // namespace

IndexSet::IndexSet(const std::filesystem::path& path) : file_(File::open(path)) {
  const auto refuse = [&](const char* what) {
    throw DataError(ErrorCode::kDataCorrupt, what, {.source = path.string()}, "write it again: headrace index");
  };
  std::array<std::byte, kTrailer> trailer{};
  if (file_.size() < kHead + kTrailer) refuse("is no set of indexes");
  file_.read_exact(file_.size() - kTrailer, trailer);
  const std::uint64_t begin = little_endian(trailer, 0, 8), count = little_endian(trailer, 8, 8);
  const std::uint64_t end = file_.size() - kTrailer;
  if (begin < kHead || begin > end || end - begin > kMaxDirectory) refuse("is no set of indexes");
  std::vector<std::byte> directory(static_cast<std::size_t>(end - begin));
  file_.read_exact(begin, directory);
  directory.insert(directory.end(), trailer.begin(), trailer.begin() + 16);
  if (xxh3(directory) != little_endian(trailer, 16, 8)) refuse("is damaged: its checksum does not hold");
  ByteReader reader(directory, path.string(), begin);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string key = reader.text();
    const std::uint64_t offset = reader.u64(), bytes = reader.u64();
    if (offset < kHead || offset > begin || bytes > begin - offset) refuse("is damaged: an index lies outside");
    places_.emplace(std::move(key), std::pair(offset, bytes));
  }
}

std::shared_ptr<const IndexSet> IndexSet::beside(const std::filesystem::path& file) {
  struct Found {
    std::shared_ptr<const IndexSet> set;
    SetClock::time_point when;
  };
  static std::mutex mutex;
  static std::map<std::filesystem::path, Found> sets;  // by their folder; by mutex
  // HTTP has no listing: each opening would ask for a file that is not there.
  if (is_url(file) && !is_store_url(file.native())) return nullptr;
  const std::filesystem::path folder = file.parent_path();
  const std::lock_guard lock(mutex);
  const SetClock::time_point now = SetClock::now();
  std::erase_if(sets, [&](const auto& one) { return now - one.second.when > kHeld; });
  const auto [found, is_new] = sets.try_emplace(folder, Found{.set = nullptr, .when = now});
  if (!is_new) return found->second.set;
  try {
    const std::filesystem::path path = folder / kFileName;
    if (path_kind(path) == PathKind::kFile) found->second.set.reset(new IndexSet(path));
  } catch (const std::exception&) {  // the data are read without it
  }
  return found->second.set;
}

std::optional<std::vector<std::byte>> IndexSet::find(const std::string& key) const {
  const auto found = places_.find(key);
  if (found == places_.end()) return std::nullopt;
  std::vector<std::byte> index(static_cast<std::size_t>(found->second.second));
  file_.read_exact(found->second.first, index);
  return index;
}

IndexCollector::IndexCollector() {
  const std::lock_guard lock(collecting);
  collector = this;
}

IndexCollector::~IndexCollector() {
  const std::lock_guard lock(collecting);
  collector = nullptr;
}

bool IndexCollector::is_there() {
  const std::lock_guard lock(collecting);
  return collector != nullptr;
}

void IndexCollector::offer(const std::string& key, std::span<const std::byte> index) {
  const std::lock_guard lock(collecting);
  if (collector == nullptr) return;
  const std::lock_guard own(collector->mutex_);
  collector->indexes_[key].assign(index.begin(), index.end());
}

std::uint64_t IndexCollector::bytes() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t bytes = 0;
  for (const auto& [key, index] : indexes_) bytes += index.size();
  return bytes;
}

void IndexCollector::write(const std::filesystem::path& path) const {
  const std::lock_guard lock(mutex_);
  FileWriter writer(path);
  ByteWriter head, directory, trailer;
  head.raw(std::as_bytes(std::span(kSetMagic))).u32(kSetVersion);
  writer.append(head.bytes());
  for (const auto& [key, index] : indexes_) {
    directory.text(key).u64(writer.size()).u64(index.size());
    writer.append(index);
  }
  directory.u64(writer.size()).u64(indexes_.size());
  trailer.u64(xxh3(directory.bytes()));
  writer.append(directory.bytes());
  writer.append(trailer.bytes());
  writer.commit();
}

}  // namespace headrace
