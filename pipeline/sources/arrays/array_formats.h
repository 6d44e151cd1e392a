// Recognises formats of arrays: Yann LeCun's IDX, CIFAR's binaries, NumPy's files.
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
  std::vector<std::byte> elements;  // as in the file: the extents' product
};

// Reads a file of any of the six types and 1 to 6 axes, plain or gzip. The header is checked against the file's
// possible size before anything is allocated. Throws DataError with the offset if it is not an IDX file, is cut
// short or has bytes left over.
IdxFile read_idx(const std::filesystem::path& path);

// Returns the path of the MNIST file `stem` ("train-images", 3 axes) in a folder, as train-images-idx3-ubyte or
// .idx3-ubyte, plain or .gz, or of another type (idx3-float) or number of axes; empty if there is none.
std::filesystem::path find_idx(const std::filesystem::path& folder, const char* stem, int axes);

enum class CifarFormat { kNone, kCifar10, kCifar100 };
CifarFormat find_cifar(const std::filesystem::path& folder);

bool is_npy(const std::filesystem::path& file);
// Returns whether it is a zip archive whose first file is a .npy.
bool is_npz(const std::filesystem::path& file);

}  // namespace headrace
