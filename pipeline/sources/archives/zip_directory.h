// The files of a zip archive, from the directory at its end.
//
// Implemented here instead of with libzip or libarchive: libzip's handles serve one thread at a time, and one for
// each reader would hold a directory of a million entries each; libarchive reads a zip from front to back. Both
// hide the position of a member's bytes, which reading by position needs. Inflating and CRC-32 are zlib's
// (stored_file.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/pipeline/sources/archives/stored_file.h"

namespace headrace {

struct ZipFile {
  std::string path;  // relative, in UTF-8
  StoredFile place;
  const char* unreadable = nullptr;  // why it cannot be read: "is encrypted"
};

bool starts_like_zip(std::span<const std::byte> start);

// Returns the files without folders, in the directory's order; zip64 or not, with or without a comment or a
// leading program. `archive` is the path, `size` its bytes. Throws DataError if there is no directory (an archive
// that was cut off) or an invalid one: members that overlap its end, sizes that no deflated data can have, another
// number of members than it states.
std::vector<ZipFile> list_zip(const std::string& archive, std::uint64_t size, const ReadAt& read_at);

}  // namespace headrace
