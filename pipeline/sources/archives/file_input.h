// A file's own bytes, read ahead in pieces: small ones where much is skipped, so that the headers of an archive
// are read without its members' data.
#pragma once

#include <vector>

#include "headrace/devices/base/file.h"
#include "headrace/pipeline/sources/archives/byte_input.h"

namespace headrace {

class FileInput final : public ByteInput {
 public:
  explicit FileInput(const std::filesystem::path& path);

  void skip(std::uint64_t count) override;
  std::uint64_t max_left() const noexcept override;

  // Returns the next piece of the file without copying it: empty at the end, valid until the next call.
  std::span<const std::byte> next_piece();

 private:
  std::size_t read_some(std::span<std::byte> into) override;
  void refill();

  File file_;
  std::vector<std::byte> buffer_;
  std::uint64_t buffer_offset_ = 0;  // of buffer_[0] within the file
  std::size_t buffered_ = 0;
  std::size_t next_read_;  // bytes
};

}  // namespace headrace
