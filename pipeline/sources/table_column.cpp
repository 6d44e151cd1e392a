#include "headrace/pipeline/sources/table_column.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <vector>

#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_lock.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/devices/base/hash.h"

namespace headrace {
namespace {

constexpr const char* kEnding = ".table";
constexpr std::chrono::seconds kLockWait{10};
constexpr std::uint64_t kDay = std::uint64_t{86'400} * 1'000'000'000, kMonth = 30 * kDay;  // ns
constexpr std::size_t kCompared = std::size_t{1} << 20;                                    // bytes at a time

std::uint64_t age_of(std::uint64_t modified_ns) {
  const auto now =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch());
  const auto ns = static_cast<std::uint64_t>(now.count());
  return ns > modified_ns ? ns - modified_ns : 0;
}

// Without touching its pages by a mapping: they would count as this process's.
bool holds(const File& file, std::span<const std::byte> bytes) {
  if (file.size() != bytes.size()) return false;
  std::vector<std::byte> piece(kCompared);
  for (std::uint64_t at = 0; at < bytes.size(); at += kCompared) {
    const std::span<const std::byte> expected =
        bytes.subspan(at, std::min<std::size_t>(kCompared, bytes.size() - at));
    file.read_exact(at, std::span(piece).first(expected.size()));
    if (std::memcmp(expected.data(), piece.data(), expected.size()) != 0) return false;
  }
  return true;
}

std::optional<File> open_table(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  if (path_kind(path) != PathKind::kFile) return std::nullopt;
  File file = File::open(path);
  if (!holds(file, bytes)) return std::nullopt;
  if (age_of(file.modified_ns()) > kDay) MappedFile(path).touch();
  return file;
}

void remove_old(const std::filesystem::path& folder) {
  for (const DirectoryEntry& entry : list_directory(folder)) {
    if (entry.path.extension() == kEnding && age_of(entry.modified_ns) > kMonth) remove_file(entry.path);
  }
}

}  // namespace

std::shared_ptr<const FilePart> shared_copy(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() < FilePart::kMinMapped) return nullptr;
  try {
    const std::filesystem::path folder = cache_folder("HEADRACE_INDEX_FOLDER", "index");
    if (folder.empty() || folder == "off") return nullptr;
    make_folders(folder);
    if (is_shared_by_hosts(folder)) return nullptr;
    const std::filesystem::path path = folder / (xxh3_128_hex(bytes) + kEnding);
    std::optional<File> file = open_table(path, bytes);
    if (!file) {
      const FolderLock lock(folder, kLockWait);  // so that processes that start together write one file
      file = open_table(path, bytes);
      if (!file) {
        FileWriter writer(path, Appears::kWhole, Links::kReplaced);
        writer.append(bytes);
        writer.commit(Durability::kLater);
        file = open_table(path, bytes);
        remove_old(folder);
      }
    }
    if (!file) return nullptr;
    return std::make_shared<const FilePart>(*file, 0, file->size());
  } catch (const std::exception&) {  // each has its own
    return nullptr;
  }
}

}  // namespace headrace
