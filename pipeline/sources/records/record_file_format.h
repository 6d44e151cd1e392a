// What a record file holds before and after its records: the header, with fields, classes and splits, and the
// index. pipeline/FORMAT.md describes the bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/devices/base/file.h"
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
  static constexpr std::uint32_t kVersion = 1;

  Fields fields;
  std::vector<std::string> classes;
  std::vector<SplitEntry> splits;

  // Returns the bytes from the magic number to the checksum.
  std::vector<std::byte> encode() const;
  // Reads the header; `bytes` receives its size. Throws DataError saying what is wrong.
  static RecordFileHeader read(const File& file, std::uint64_t& bytes);

  // Returns the number of records in all splits.
  std::uint64_t records() const noexcept;
};

// Returns whether a field can have so many bytes in a record: those of its shape, or of whole entries if its first
// extent varies; an encoded image any.
bool can_have(const Field& field, std::uint64_t bytes) noexcept;

struct RecordFileHeader;

class RecordFileIndex {
 public:
  struct Entry {
    std::uint64_t offset = 0;  // in the file
    std::uint64_t checksum = 0;
    std::uint64_t name_end = 0;  // in the names
  };

  // `fields`: of a record.
  explicit RecordFileIndex(std::size_t fields) : fields_(fields) {}

  // REQUIRES: `field_bytes` has the length of each field.
  void add(std::uint64_t offset, std::uint64_t checksum, std::span<const std::uint64_t> field_bytes,
           std::string_view name);
  // Returns the index and the footer, for an index at `offset` of the file.
  std::vector<std::byte> encode(std::uint64_t offset) const;
  // Reads and checks both; the records begin at `first`. Throws DataError saying what is wrong.
  static RecordFileIndex read(const File& file, const RecordFileHeader& header, std::uint64_t first);

  std::uint64_t size() const noexcept { return entries_.size(); }
  const Entry& operator[](std::uint64_t record) const noexcept { return entries_[record]; }
  std::string_view name(std::uint64_t record) const noexcept;
  std::span<const std::uint64_t> field_bytes(std::uint64_t record) const noexcept {
    return std::span(field_bytes_).subspan(static_cast<std::size_t>(record) * fields_, fields_);
  }
  std::uint64_t bytes(std::uint64_t record) const noexcept;

 private:
  std::size_t fields_;
  std::vector<Entry> entries_;
  std::vector<std::uint64_t> field_bytes_;  // by record and field
  std::string names_;                       // back to back
};

}  // namespace headrace
