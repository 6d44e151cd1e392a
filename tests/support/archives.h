// Tar archives and compressed bytes for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "headrace/tests/support/bytes.h"

namespace headrace::test {

// A tar archive put together member by member.
class TarBuilder {
 public:
  TarBuilder& add(const std::string& path, std::span<const std::byte> bytes) { return add(path, bytes, '0'); }
  TarBuilder& add_folder(const std::string& path) { return add(path, {}, '5'); }
  TarBuilder& add_link(const std::string& path) { return add(path, {}, '2'); }
  // A file whose name (and size) stand in extended headers.
  TarBuilder& add_with_gnu_name(const std::string& path, std::span<const std::byte> bytes);
  TarBuilder& add_with_pax(const std::string& path, std::span<const std::byte> bytes);

  // Without the two blocks of zeros that end an archive.
  const Bytes& unfinished() const noexcept { return bytes_; }
  Bytes finish() const;

 private:
  TarBuilder& add(const std::string& path, std::span<const std::byte> bytes, char type);
  void add_header(const std::string& path, std::uint64_t size, char type);
  void add_data(std::span<const std::byte> bytes);

  Bytes bytes_;
};

// Corrects a header's checksum after a test has changed it.
void fix_tar_checksum(std::span<std::byte> header);

Bytes gzip(std::span<const std::byte> bytes);
Bytes zstd(std::span<const std::byte> bytes);

}  // namespace headrace::test
