// The header of a NumPy array file (.npy, versions 1 to 3).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/shape.h"
#include "headrace/pipeline/sources/arrays/file_elements.h"

namespace headrace {

struct NpyHeader {
  FileElement element;  // booleans are bytes of 0 and 1
  bool is_fortran = false;
  std::vector<std::int64_t> extents;  // outermost first; the first counts the records
  std::uint64_t data_offset = 0;      // of the elements, back to back to the end of the file

  std::uint64_t records() const noexcept { return static_cast<std::uint64_t>(extents.front()); }
  Shape record_shape() const { return Shape(std::span(extents).subspan(1)); }
  // Returns the bytes of one record in the file.
  std::uint64_t record_bytes() const {
    return static_cast<std::uint64_t>(record_shape().elements()) * element.bytes;
  }
};

// Maximum length of a header.
inline constexpr std::size_t kMaxNpyHeader = std::size_t{64} << 10;

bool starts_like_npy(std::span<const std::byte> start);

// Parses the header in `start`, the file's first kMaxNpyHeader bytes or all; `size` is the file's. Throws
// DataError naming `source` if it is no such file, is cut short or has bytes left over; kUnsupported if elements
// are not numbers (Python objects, texts, structured records, complex numbers), without a first axis or with too
// many axes.
NpyHeader parse_npy_header(const std::string& source, std::span<const std::byte> start, std::uint64_t size);
// Parses the header of one array, or of one number, which has no axes. Throws as parse_npy_header() does.
NpyHeader parse_npy(const std::string& source, std::span<const std::byte> start, std::uint64_t size);

}  // namespace headrace
