// Yann LeCun's IDX format: a magic number, extents, elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace headrace {

struct IdxFile {
  std::vector<std::int64_t> extents;  // outermost first
  std::vector<std::byte> elements;    // as many bytes as the extents' product
};

// A file of unsigned bytes, plain or gzip. The header is checked against what the file can hold before anything
// is allocated; DataError with the offset where it is no IDX file, is cut short or has bytes left over.
IdxFile read_idx(const std::filesystem::path& path);

// The MNIST file `stem` ("train-images", 3 axes) in a folder, as train-images-idx3-ubyte or .idx3-ubyte, plain
// or .gz; an empty path where it has none.
std::filesystem::path find_idx(const std::filesystem::path& folder, const char* stem, int axes);

}  // namespace headrace
