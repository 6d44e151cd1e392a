// The location of a file within an archive that is read by position.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/file.h"

namespace headrace {

struct StoredFile {
  enum class Kind : std::uint8_t { kPlain, kZipStored, kZipDeflated };

  std::uint64_t offset = 0;       // of its bytes; in a zip, of the header before them
  std::uint64_t size = 0;         // of the file
  std::uint64_t packed_size = 0;  // in a zip: of its bytes in the archive
  std::uint32_t crc = 0;          // in a zip: CRC-32 of the file
  Kind kind = Kind::kPlain;
  std::array<std::uint8_t, 3> zeros = {};  // in place of padding, which would be of any value
};

// Returns what reading the file will touch; in a zip, as much as the header before the bytes usually takes.
ByteExtent extent_of(const StoredFile& file) noexcept;

// Fills `into` from a position of the archive. Throws DataError. Thread-safe.
using ReadAt = std::function<void(std::uint64_t offset, std::span<std::byte> into)>;

// Fills `into`, checking the CRC-32 of a zip's file. Thread-safe. Throws DataError with the offset in `archive`,
// its path, if the bytes are cut off, do not unpack to `size` or have another CRC-32. REQUIRES: into.size() is
// file.size.
void read_stored(const StoredFile& file, const std::string& archive, const ReadAt& read_at,
                 std::span<std::byte> into);

// Reads an image into `scratch`, which grows as needed, and returns its bytes there. Throws like read_stored(),
// and also if a deflated file claims to be larger than any image.
std::span<const std::byte> read_stored_image(const StoredFile& file, const std::string& archive,
                                             const ReadAt& read_at, std::vector<std::byte>& scratch);

}  // namespace headrace
