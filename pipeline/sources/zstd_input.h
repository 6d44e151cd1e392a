// A zstd file unpacked on the way (by libarchive).
#pragma once

#include <exception>
#include <memory>

#include "headrace/pipeline/sources/byte_input.h"
#include "headrace/pipeline/sources/file_input.h"

struct archive;

namespace headrace {

class ZstdInput final : public ByteInput {
 public:
  explicit ZstdInput(const std::filesystem::path& path);
  ~ZstdInput() override;

  std::uint64_t most_left() const noexcept override;

 private:
  struct Free {
    void operator()(archive* reader) const noexcept;
  };

  static std::ptrdiff_t feed(archive* reader, void* self, const void** piece);

  std::size_t read_some(std::span<std::byte> into) override;
  [[noreturn]] void fail() const;

  FileInput file_;
  std::exception_ptr read_error_;  // of file_, carried through libarchive
  std::span<const std::byte> block_;
  bool ended_ = false;
  std::unique_ptr<archive, Free> reader_;  // last: it calls back into the rest
};

}  // namespace headrace
