// Yann LeCun's IDX format: a magic number, extents, elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "headrace/pipeline/sources/arrays/file_elements.h"

namespace headrace {

struct IdxFile {
  std::vector<std::int64_t> extents;  // outermost first
  FileElement element;
  std::vector<std::byte> elements;  // as they are in the file: the extents' product
};

// A file of any of the six types and 1 to 6 axes, plain or gzip. The header is checked against what the file can
// hold before anything is allocated; DataError with the offset where it is no IDX file, is cut short or has bytes
// left over.
IdxFile read_idx(const std::filesystem::path& path);

// The MNIST file `stem` ("train-images", 3 axes) in a folder, as train-images-idx3-ubyte or .idx3-ubyte, plain
// or .gz, or of another type (idx3-float) or number of axes; an empty path where it has none.
std::filesystem::path find_idx(const std::filesystem::path& folder, const char* stem, int axes);

}  // namespace headrace
