// The files of a zip archive, from the directory at its end.
//
// Written here, and not left to libzip or libarchive: libzip's handles serve one thread at a time, and one for
// each reader would hold a directory of a million entries each; libarchive reads a zip from front to back. Both
// hide where a member's bytes lie, which is what reading by position needs. Inflating and CRC-32 are zlib's
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

// Folders left out, in the directory's order; zip64 or not, with a comment or a program before it or without.
// `archive` is the path, `size` its bytes. DataError where there is no directory (an archive that was cut off), or
// one that makes no sense: members that overlap its end, sizes that no deflated data can have, another number of
// members than it says.
std::vector<ZipFile> list_zip(const std::string& archive, std::uint64_t size, const ReadAt& read_at);

}  // namespace headrace
