// What a record file holds before and after its records: the header, with fields, classes and splits, and the
// index. pipeline/FORMAT.md describes the bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/devices/base/byte_io.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/mapped_file.h"
#include "headrace/pipeline/record.h"
#include "headrace/pipeline/sources.h"

namespace headrace {

struct RecordFileHeader {
  struct SplitEntry {
    Split split = Split::kTrain;
    std::uint64_t records = 0;
    std::uint64_t origin = 0;  // fingerprint of the source it was made from
    bool operator==(const SplitEntry&) const = default;
  };

  static constexpr std::array<std::byte, 8> kMagic = {std::byte{0x89}, std::byte{'H'}, std::byte{'D'},
                                                      std::byte{'R'},  std::byte{'R'}, std::byte{0x0D},
                                                      std::byte{0x0A}, std::byte{0x1A}};
  // 2: a JPEG's index may follow its record, and each entry of the file's index says how long it is.
  static constexpr std::uint32_t kVersion = 2, kWithoutJpegIndexes = 1;

  Fields fields;
  std::vector<std::string> classes;
  std::vector<SplitEntry> splits;
  std::uint32_t version = version_for(fields);

  // Returns whether a JPEG's index may follow a record: if it has an encoded image.
  bool has_jpeg_indexes() const noexcept { return version == kVersion; }
  // Returns the version of files with these fields.
  static std::uint32_t version_for(const Fields& fields) noexcept;
  // Returns the bytes from the magic number to the checksum.
  std::vector<std::byte> encode() const;
  // Reads the header; `bytes` receives its size. Throws DataError saying what is wrong.
  static RecordFileHeader read(const File& file, std::uint64_t& bytes);

  // Returns the number of records in all splits.
  std::uint64_t records() const noexcept;
  bool operator==(const RecordFileHeader&) const = default;
};

// The bytes that a field can have in a record: those of its shape, or of whole entries if its first extent varies;
// an encoded image any.
class FieldSize {
 public:
  explicit FieldSize(const Field& field) noexcept;

  bool allows(std::uint64_t bytes) const noexcept {
    if (is_any_) return true;
    return varies_ ? (entry_ > 0 ? bytes % entry_ == 0 : bytes == 0) : bytes == entry_;
  }

 private:
  bool is_any_, varies_;
  std::uint64_t entry_ = 0;  // bytes, of the whole field if it does not vary
};

// Bytes before a JPEG's index: the XXH3-64 of it, with the record's checksum as the seed.
inline constexpr std::size_t kJpegChecksum = 8;

// The index of a file that is being written.
class RecordIndexBuilder {
 public:
  explicit RecordIndexBuilder(bool has_jpeg_indexes) : has_jpeg_indexes_(has_jpeg_indexes) {}

  // REQUIRES: `field_bytes` has the length of each field. `jpeg_bytes`: of the JPEG's index after it.
  void add(std::uint64_t offset, std::uint64_t checksum, std::span<const std::uint64_t> field_bytes,
           std::string_view name, std::uint64_t jpeg_bytes);
  std::uint64_t size() const noexcept { return size_; }
  // Returns the index and the footer, for an index at `offset` of the file.
  std::vector<std::byte> encode(std::uint64_t offset) const;

 private:
  bool has_jpeg_indexes_;
  ByteWriter entries_;
  std::string names_;  // back to back
  std::uint64_t size_ = 0;
};

// The index of a file: its bytes as they stand there.
class RecordFileIndex {
 public:
  // Reads index and footer; the records begin at `first`. Throws DataError saying what is wrong with the footer.
  RecordFileIndex(const File& file, const RecordFileHeader& header, std::uint64_t first);

  // Checks each entry and the checksum. Throws DataError saying what is wrong. REQUIRES: called before name(),
  // with the file's own path and header.
  void check(const std::filesystem::path& path, const RecordFileHeader& header);

  std::uint64_t size() const noexcept { return records_; }
  std::uint64_t offset(std::uint64_t record) const noexcept { return number(record, 0); }
  std::uint64_t checksum(std::uint64_t record) const noexcept { return number(record, 1); }
  std::uint64_t field_bytes(std::uint64_t record, std::size_t field) const noexcept {
    return number(record, numbers_ + field);
  }
  // Returns the length of the JPEG's index that follows the record's fields.
  std::uint64_t jpeg_bytes(std::uint64_t record) const noexcept {
    return numbers_ == kNumbers ? 0 : number(record, kNumbers);
  }
  // Returns the length of its fields.
  std::uint64_t bytes(std::uint64_t record) const noexcept;
  std::string_view name(std::uint64_t record) const noexcept;

 private:
  // Before the fields' lengths: offset, checksum, bytes of the name, and in version 2 those of the JPEG's index.
  static constexpr std::size_t kNumbers = 3;

  std::uint64_t number(std::uint64_t record, std::size_t which) const noexcept {
    std::uint64_t value = 0;
    const std::size_t at = static_cast<std::size_t>(record) * (numbers_ + fields_) + which;
    std::memcpy(&value, bytes_.bytes().data() + at * sizeof value, sizeof value);
    return value;
  }
  void check_block(const std::filesystem::path& path, const RecordFileHeader& header,
                   std::span<const FieldSize> sizes, std::pair<std::uint64_t, std::uint64_t> records,
                   std::uint64_t& at, std::uint64_t& names) const;
  std::size_t entry_bytes() const noexcept { return (numbers_ + fields_) * sizeof(std::uint64_t); }

  FilePart bytes_;  // entries, then names
  std::size_t fields_ = 0, numbers_ = kNumbers;
  std::uint64_t records_ = 0, first_, index_offset_ = 0, checksum_ = 0;
  std::vector<std::uint64_t> names_before_;  // bytes of the names before each block of records
};

}  // namespace headrace
