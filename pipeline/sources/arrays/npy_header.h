// The header of a NumPy array file (.npy, versions 1 to 3).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/shape.h"
#include "headrace/pipeline/sources/arrays/file_elements.h"

namespace headrace {

// A member of the elements of a structured array.
struct NpyMember {
  std::string name;
  FileElement element;  // text is bytes
  std::vector<std::int64_t> extents;
  std::uint64_t offset = 0;  // in an element
};

struct NpyHeader {
  FileElement element;  // booleans are bytes of 0 and 1; of a structured array, all bytes of an element
  bool is_fortran = false;
  std::vector<std::int64_t> extents = {};  // outermost first; the first counts the records
  std::uint64_t data_offset = 0;           // of the elements, back to back to the end of the file
  std::vector<NpyMember> members = {};     // of a structured array
  // For a member of a structured array: the bytes from one record to the next, and its offset in each.
  std::uint64_t row_bytes = 0, row_offset = 0;

  std::uint64_t records() const noexcept { return static_cast<std::uint64_t>(extents.front()); }
  Shape record_shape() const { return Shape(std::span(extents).subspan(1)); }
  // Returns the bytes of one record in the file.
  std::uint64_t record_bytes() const {
    return static_cast<std::uint64_t>(record_shape().elements()) * element.bytes;
  }
  // Returns where a record begins in the file.
  std::uint64_t record_offset(std::uint64_t record) const {
    return data_offset + row_offset + record * (row_bytes != 0 ? row_bytes : record_bytes());
  }
  // Returns the header of one member of a structured array, whose records are parts of its own.
  NpyHeader of_member(const NpyMember& member) const;
};

// Maximum length of a header.
inline constexpr std::size_t kMaxNpyHeader = std::size_t{64} << 10;

bool starts_like_npy(std::span<const std::byte> start);

// Parses the header in `start`, the file's first kMaxNpyHeader bytes or all; `size` is the file's. Throws
// DataError naming `source` if it is no such file, is cut short or has bytes left over; kUnsupported if elements
// are not numbers (Python objects, texts, complex numbers; in structured arrays texts of bytes are read, and
// members that are structured themselves are not), without a first axis or with too many axes, or if a structured
// array has more than one axis.
NpyHeader parse_npy_header(const std::string& source, std::span<const std::byte> start, std::uint64_t size);
// Parses the header of one array, or of one number, which has no axes. Throws as parse_npy_header() does.
NpyHeader parse_npy(const std::string& source, std::span<const std::byte> start, std::uint64_t size);

}  // namespace headrace
