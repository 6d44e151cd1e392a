// A gzip file unpacked on the way, its checksums verified.
#pragma once

#include <memory>

#include "headrace/pipeline/sources/byte_input.h"
#include "headrace/pipeline/sources/file_input.h"

namespace headrace {

class GzipInput final : public ByteInput {
 public:
  explicit GzipInput(const std::filesystem::path& path);
  ~GzipInput() override;

  std::uint64_t most_left() const noexcept override;

 private:
  struct Inflater;

  std::size_t read_some(std::span<std::byte> into) override;
  void refill();
  [[noreturn]] void fail(const std::string& what) const;

  FileInput file_;
  std::unique_ptr<Inflater> inflater_;
};

}  // namespace headrace
