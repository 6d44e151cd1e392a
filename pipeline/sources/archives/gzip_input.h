// A gzip or zlib file unpacked on the way, its checksums verified.
#pragma once

#include <memory>

#include "headrace/pipeline/sources/archives/byte_input.h"
#include "headrace/pipeline/sources/archives/file_input.h"

namespace headrace {

// Members may follow one another, and zeros may follow a gzip member: tapes and block devices pad with them.
// Anything else after a member is damage.
class GzipInput final : public ByteInput {
 public:
  enum class Wrapper { kGzip, kZlib };

  explicit GzipInput(const std::filesystem::path& path, Wrapper wrapper = Wrapper::kGzip);
  ~GzipInput() override;

  std::uint64_t max_left() const noexcept override;

 private:
  struct Inflater;

  std::size_t read_some(std::span<std::byte> into) override;
  void refill();
  void pass_padding();
  [[noreturn]] void fail(const std::string& what) const;

  FileInput file_;
  Wrapper wrapper_;
  std::unique_ptr<Inflater> inflater_;
};

}  // namespace headrace
