#include "headrace/pipeline/sources/archives/zip_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources/archives/archive_path.h"
#include "headrace/pipeline/sources/bytes.h"

namespace headrace {
namespace {

// Signatures and sizes without what varies (PKWARE's APPNOTE.TXT 6.3.10, sections 4.3.12 to 4.3.16).
constexpr std::uint64_t kLocal = 0x04034B50, kEntry = 0x02014B50, kEnd = 0x06054B50, kEnd64 = 0x06064B50,
                        kLocator64 = 0x07064B50;
constexpr std::size_t kEntryBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr std::uint64_t kMaxComment = 0xFFFF;
constexpr std::uint64_t kIn64 = 0xFFFFFFFF;  // a number of 32 bits that stands in a zip64 field
constexpr std::uint64_t kMaxZipGain = 1032;
constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 40;

constexpr unsigned kEncrypted = 1, kUtf8 = 1 << 11;              // flags
constexpr unsigned kStored = 0, kDeflated = 8;                   // methods
constexpr unsigned kFat = 0, kNtfs = 10, kVfat = 14, kUnix = 3;  // systems that made an entry

class Directory {
 public:
  Directory(const std::string& archive, std::uint64_t size, const ReadAt& read_at)
      : archive_(archive), size_(size), read_at_(read_at) {}

  std::vector<ZipFile> list() {
    find_end();
    std::vector<std::byte> bytes(static_cast<std::size_t>(directory_size_));
    read_at_(begin_, bytes);
    std::vector<ZipFile> files;
    std::uint64_t entries = 0;
    for (std::size_t at = 0; at < bytes.size(); ++entries) at += add_entry(bytes, at, files);
    // Old writers count modulo 2^16.
    if (entries != entries_ && (is_64_ || (entries & 0xFFFF) != entries_)) {
      fail(fmt::format("its directory holds {} members and says {}", entries, entries_), begin_);
    }
    return files;
  }

 private:
  [[noreturn]] void fail(const std::string& what, std::uint64_t offset) const {
    throw DataError(ErrorCode::kDataCorrupt, what, {.source = archive_, .offset = offset},
                    "download or copy the archive again");
  }

  // Finds the directory. The end record precedes a comment of at most 64 KiB.
  void find_end() {
    const std::uint64_t looked_at = std::min(size_, kMaxComment + kEndBytes);
    std::vector<std::byte> tail(static_cast<std::size_t>(looked_at));
    read_at_(size_ - looked_at, tail);
    for (std::size_t at = tail.size() < kEndBytes ? 0 : tail.size() - kEndBytes + 1; at-- > 0;) {
      if (little_endian(tail, at, 4) != kEnd) continue;
      if (at + kEndBytes + little_endian(tail, at + 20, 2) > tail.size()) continue;
      return take_end(std::span(tail).subspan(at, kEndBytes), size_ - looked_at + at);
    }
    fail("is a zip archive without the directory at its end: it was cut off", size_);
  }

  void take_end(std::span<const std::byte> end, std::uint64_t offset) {
    std::uint64_t disk = little_endian(end, 4, 2), begin = little_endian(end, 16, 4), before = offset;
    entries_ = little_endian(end, 10, 2);
    directory_size_ = little_endian(end, 12, 4);
    std::array<std::byte, kEnd64Bytes> end64;
    if (const std::optional<std::uint64_t> at = find_end64(offset, end64)) {
      is_64_ = true;
      disk = little_endian(end64, 16, 4);
      entries_ = little_endian(end64, 32, 8);
      directory_size_ = little_endian(end64, 40, 8);
      begin = little_endian(end64, 48, 8);
      before = *at;
    }
    if (disk != 0) {
      throw DataError(ErrorCode::kUnsupported, "is the last part of a zip archive in several",
                      {.source = archive_}, "join them: zip -s 0 ARCHIVE.zip --out WHOLE.zip");
    }
    if (directory_size_ > before || begin > before - directory_size_) {
      fail("its directory does not fit before its end: bytes are missing", offset);
    }
    // Offsets count from the archive's start, which need not be the file's: a program may stand before it.
    begin_ = before - directory_size_;
    if (begin_ != begin && directory_size_ >= 4 && has_entry_at(begin)) begin_ = begin;
    start_ = begin_ - begin;
  }

  bool has_entry_at(std::uint64_t offset) const {
    std::array<std::byte, 4> signature;
    read_at_(offset, signature);
    return little_endian(signature, 0, 4) == kEntry;
  }

  std::optional<std::uint64_t> find_end64(std::uint64_t end, std::span<std::byte> end64) const {
    if (end < kLocator64Bytes + kEnd64Bytes) return std::nullopt;
    std::array<std::byte, kLocator64Bytes> locator;
    read_at_(end - kLocator64Bytes, locator);
    if (little_endian(locator, 0, 4) != kLocator64) return std::nullopt;
    const std::uint64_t last = end - kLocator64Bytes - kEnd64Bytes;
    // Tried at its stated place, then right before the locator: the place ignores bytes before the archive.
    for (const std::uint64_t at : {little_endian(locator, 8, 8), last}) {
      if (at > last) continue;
      read_at_(at, end64);
      if (little_endian(end64, 0, 4) == kEnd64) return at;
    }
    fail("its zip64 directory is not where it should be", end - kLocator64Bytes);
  }

  // Adds the entry at `at` and returns its bytes.
  std::size_t add_entry(std::span<const std::byte> bytes, std::size_t at, std::vector<ZipFile>& files) const {
    const auto number = [&](std::size_t where, std::size_t size) {
      return little_endian(bytes, at + where, size);
    };
    if (bytes.size() - at < kEntryBytes || number(0, 4) != kEntry) fail("its directory is damaged", begin_ + at);
    const auto name_bytes = static_cast<std::size_t>(number(28, 2)),
               extra = static_cast<std::size_t>(number(30, 2));
    const std::size_t length = kEntryBytes + name_bytes + extra + static_cast<std::size_t>(number(32, 2));
    if (length > bytes.size() - at) fail("its directory is damaged", begin_ + at);

    const auto system = static_cast<unsigned>(number(5, 1)), flags = static_cast<unsigned>(number(8, 2)),
               method = static_cast<unsigned>(number(10, 2));
    ZipFile file;
    file.path = zip_path({reinterpret_cast<const char*>(bytes.data()) + at + kEntryBytes, name_bytes},
                         (flags & kUtf8) != 0, system == kFat || system == kNtfs || system == kVfat);
    file.place = {.offset = number(42, 4),
                  .size = number(24, 4),
                  .packed_size = number(20, 4),
                  .crc = static_cast<std::uint32_t>(number(16, 4)),
                  .kind = method == kStored ? StoredFile::Kind::kZipStored : StoredFile::Kind::kZipDeflated};
    take_zip64(bytes.subspan(at + kEntryBytes + name_bytes, extra), file.place, begin_ + at);
    const bool is_link = system == kUnix && (number(38, 4) >> 28) == 0xA;  // S_IFLNK
    file.unreadable = (flags & kEncrypted) != 0                  ? "is encrypted"
                      : method != kStored && method != kDeflated ? "is packed in another way than by deflate"
                      : is_link                                  ? "is a link to another file"
                                                                 : nullptr;
    if (file.path.ends_with('/')) {
      file.unreadable = "is a folder";
      files.push_back(std::move(file));
      return length;
    }
    check_place(file, begin_ + at);
    file.place.offset += start_;
    files.push_back(std::move(file));
    return length;
  }

  // The extra field 1 has the numbers that 32 bits do not hold, in this order.
  void take_zip64(std::span<const std::byte> extra, StoredFile& place, std::uint64_t offset) const {
    for (std::size_t at = 0; at + 4 <= extra.size();) {
      const std::uint64_t id = little_endian(extra, at, 2);
      const auto size = static_cast<std::size_t>(little_endian(extra, at + 2, 2));
      if (size > extra.size() - at - 4) return;  // not all writers keep to the format here
      std::span<const std::byte> field = extra.subspan(at + 4, size);
      at += 4 + size;
      if (id != 1) continue;
      for (std::uint64_t* number : {&place.size, &place.packed_size, &place.offset}) {
        if (*number != kIn64) continue;
        if (field.size() < 8) fail("its directory is damaged: a zip64 field is too short", offset);
        *number = little_endian(field, 0, 8);
        field = field.subspan(8);
      }
      return;
    }
  }

  void check_place(const ZipFile& file, std::uint64_t offset) const {
    const StoredFile& place = file.place;
    const std::uint64_t end = begin_ - start_;
    const bool lies_before = place.offset < end && place.packed_size < end - place.offset;
    const bool fits = file.unreadable != nullptr ||
                      (place.kind == StoredFile::Kind::kZipStored ? place.size == place.packed_size
                                                                  : place.size <= place.packed_size * kMaxZipGain);
    if (lies_before && place.packed_size < kMaxFileBytes && fits) return;
    fail(fmt::format("its directory is damaged: '{}' of {} bytes, packed {}, at {}", file.path, place.size,
                     place.packed_size, place.offset),
         offset);
  }

  const std::string& archive_;
  std::uint64_t size_;
  const ReadAt& read_at_;
  std::uint64_t begin_ = 0;           // of the directory, in the file
  std::uint64_t directory_size_ = 0;  // bytes
  std::uint64_t start_ = 0;           // of the archive, in the file: the origin of its offsets
  std::uint64_t entries_ = 0;
  bool is_64_ = false;
};

}  // namespace

bool starts_like_zip(std::span<const std::byte> start) {
  if (start.size() < 4) return false;
  const std::uint64_t signature = little_endian(start, 0, 4);
  return signature == kLocal || signature == kEnd;
}

std::vector<ZipFile> list_zip(const std::string& archive, std::uint64_t size, const ReadAt& read_at) {
  return Directory(archive, size, read_at).list();
}

}  // namespace headrace
