// The header of a record file: fields, classes, splits. pipeline/FORMAT.md describes the bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
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

}  // namespace headrace
