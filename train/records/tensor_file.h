// A file of named tensors and of text about them: safetensors, with checksums. FORMAT.md says which byte is what.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/dtype.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/devices/base/shape.h"

namespace headrace {

// Checksums are of blocks of a tensor, each of this many bytes but for its last: who reads a part can check it.
inline constexpr std::size_t kTensorBlock = std::size_t{1} << 20;
// Of each tensor, and of the first one, in the file.
inline constexpr std::size_t kTensorAlignment = 64, kPayloadAlignment = 4096;

// By name; each value is JSON text.
using RecordTexts = std::map<std::string, std::string>;

struct TensorToWrite {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  std::span<const std::byte> bytes;
};

// Puts the file in place, whole or not at all, and durably (FileWriter). Throws DataError naming it.
void write_tensor_file(const std::filesystem::path& path, const RecordTexts& texts,
                       std::vector<TensorToWrite> tensors, Links links = Links::kFollowed);

// Whether a safetensors file of another program lies there, which is sound as far as its header goes.
bool is_other_tensor_file(const std::filesystem::path& path);

struct StoredTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  std::uint64_t offset = 0;  // in the file
  std::uint64_t bytes = 0;
  std::vector<std::string> checksums;  // one a block

  std::size_t blocks() const noexcept { return checksums.size(); }
  // Of one block.
  std::size_t block_bytes(std::size_t block) const noexcept;
};

// A file opened for reading, its header read and checked. Thread-safe. Every failure is a DataError that names the
// file, the tensor and the offset.
class TensorFile {
 public:
  // kDataCorrupt where it is cut short or damaged, kUnsupported where it is something else.
  explicit TensorFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const noexcept { return file_.path(); }
  // DataError where there is none of this name.
  const std::string& text(const std::string& name) const;
  bool has_text(const std::string& name) const { return texts_.contains(name); }
  // In the order of their bytes, without padding.
  const std::vector<StoredTensor>& tensors() const noexcept { return tensors_; }
  const StoredTensor* find(const std::string& name) const noexcept;  // null where there is none

  // A whole tensor, or one block of it, whose checksums are compared. `into` has its size.
  void read(const StoredTensor& tensor, std::span<std::byte> into) const;
  void read_block(const StoredTensor& tensor, std::size_t block, std::span<std::byte> into) const;

 private:
  void parse(std::string& header);

  File file_;
  RecordTexts texts_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace headrace
