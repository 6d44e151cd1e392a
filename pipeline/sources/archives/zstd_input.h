// A zstd file unpacked on the way: any number of frames; skippable ones (as pzstd writes first) are skipped.
#pragma once

#include <memory>

#include "headrace/pipeline/sources/archives/byte_input.h"
#include "headrace/pipeline/sources/archives/file_input.h"

namespace headrace {

class ZstdInput final : public ByteInput {
 public:
  // A frame may look back over a window of `window_limit` bytes, rounded down to a power of two; 128 MiB, zstd's
  // own limit, are always allowed. The window is allocated, but only what the data fills of it is used.
  ZstdInput(const std::filesystem::path& path, std::uint64_t window_limit);
  ~ZstdInput() override;

  std::uint64_t max_left() const noexcept override;

 private:
  struct Decoder;

  std::size_t read_some(std::span<std::byte> into) override;
  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void fail_with(std::size_t status) const;

  FileInput file_;
  std::unique_ptr<Decoder> decoder_;
  bool within_frame_ = true;  // a file without a frame is invalid
};

}  // namespace headrace
