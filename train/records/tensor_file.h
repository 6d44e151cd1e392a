// Constants and functions shared by the writer and the reader of tensor files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/devices/base/dtype.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/devices/base/shape.h"

namespace headrace::tensor_header {

// Every header begins like this, followed by its own checksum, computed with zeros in place of the digits.
inline constexpr std::string_view kStart = R"({"__metadata__":{"checksum":")";
inline constexpr std::size_t kDigits = 32;
inline constexpr std::string_view kMetadata = "__metadata__", kChecksum = "checksum", kChecksums = "checksums";
// Prefix of the names of zero tensors that make the next one begin where it should.
inline constexpr std::string_view kPadding = "padding:";
inline constexpr std::size_t kLengthBytes = 8;
inline constexpr std::size_t kMaxBytes = 100'000'000;  // as in the safetensors library

// Convert to and from the names of types in safetensors.
const char* name_of(DType dtype) noexcept;
std::optional<DType> dtype_named(std::string_view name) noexcept;

// Returns the checksum of a header, whatever stands in place of its own.
std::string checksum_of(std::string header);

}  // namespace headrace::tensor_header

// A file of named tensors and texts about them: safetensors with checksums. FORMAT.md specifies the bytes.

namespace headrace {

// Checksums cover blocks of this many bytes, a tensor's last one excepted, so that parts can be checked.
inline constexpr std::size_t kTensorBlock = std::size_t{1} << 20;
// Alignment of each tensor, and of the first one, in the file.
inline constexpr std::size_t kTensorAlignment = 64, kPayloadAlignment = 4096;

// By name; each value is JSON text.
using RecordTexts = std::map<std::string, std::string>;

struct TensorToWrite {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  std::span<const std::byte> bytes;
};

// Writes the file whole or not at all, and durably (FileWriter). Throws DataError naming it.
void write_tensor_file(const std::filesystem::path& path, const RecordTexts& texts,
                       std::vector<TensorToWrite> tensors, Links links = Links::kFollowed);

// Returns whether the file is another program's safetensors file with a sound header.
bool is_other_tensor_file(const std::filesystem::path& path);

struct StoredTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  std::uint64_t offset = 0;  // in the file
  std::uint64_t bytes = 0;
  std::vector<std::string> checksums;  // one per block

  std::size_t blocks() const noexcept { return checksums.size(); }
  std::size_t block_bytes(std::size_t block) const noexcept;
};

enum class OtherFiles {
  kRefused,
  kAccepted,  // safetensors files of other programs, too, whose tensors have no checksums
};

// A file opened for reading, its header read and checked. Thread-safe. Every failure is a DataError that names the
// file, the tensor and the offset.
class TensorFile {
 public:
  // Throws kDataCorrupt if it is truncated or damaged, kUnsupported if it is something else. A tensor of another
  // program whose type is none of ours counts as its bytes.
  explicit TensorFile(const std::filesystem::path& path, OtherFiles others = OtherFiles::kRefused);

  const std::filesystem::path& path() const noexcept { return file_.path(); }
  // Throws DataError if there is no text of this name.
  const std::string& text(const std::string& name) const;
  bool has_text(const std::string& name) const { return texts_.contains(name); }
  // Returns the tensors in the order of their bytes, without padding.
  const std::vector<StoredTensor>& tensors() const noexcept { return tensors_; }
  const StoredTensor* find(const std::string& name) const noexcept;  // null if there is none

  // Read a whole tensor, or one block, and compare its checksums. REQUIRES: `into` has its size.
  void read(const StoredTensor& tensor, std::span<std::byte> into) const;
  void read_block(const StoredTensor& tensor, std::size_t block, std::span<std::byte> into) const;

 private:
  void parse(std::string& header);

  File file_;
  bool checked_ = true;  // ours: texts and checksums are there
  RecordTexts texts_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace headrace
