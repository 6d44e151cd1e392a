// Tar and zip archives, NumPy arrays and compressed bytes for tests.
#pragma once

#include "headrace/tests/support/test.h"

namespace headrace::test {

// A tar archive put together member by member.
class TarBuilder {
 public:
  TarBuilder& add(const std::string& path, std::span<const std::byte> bytes) { return add(path, bytes, '0'); }
  TarBuilder& add_folder(const std::string& path) { return add(path, {}, '5'); }
  TarBuilder& add_link(const std::string& path, const std::string& target = {}, char type = '2');
  TarBuilder& add_hard_link(const std::string& path, const std::string& target) {
    return add_link(path, target, '1');
  }
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
Bytes zlib(std::span<const std::byte> bytes);
// One frame with its checksum.
Bytes zstd(std::span<const std::byte> bytes);
// One frame of raw blocks whose window has 2^window_log bytes, as zstd --long=window_log says it.
Bytes zstd_with_window(std::span<const std::byte> bytes, int window_log);
// As pzstd writes: before each frame a skippable one that holds its size.
Bytes pzstd(std::span<const std::byte> bytes, std::size_t bytes_a_frame);

// A zip archive put together member by member.
class ZipBuilder {
 public:
  struct Member {
    std::string path = {};
    Bytes bytes = {};
    bool deflated = false;
    bool has_descriptor = false;  // sizes and CRC-32 follow the data, the header before them has zeros
    bool is_64 = false;           // sizes stand in zip64 fields
    unsigned flags = 0;           // beside those that the rest asks for
    unsigned method = ~0U;        // another than stored or deflated
    unsigned system = 3;          // that made it: Unix
    unsigned attributes = 0;      // external
  };

  ZipBuilder& add(Member member);
  ZipBuilder& add(const std::string& path, std::span<const std::byte> bytes, bool deflated = false);
  // What stands before the archive, not counted by its offsets.
  ZipBuilder& put_before(std::span<const std::byte> bytes);
  ZipBuilder& comment(const std::string& text);
  // A zip64 end record, and with it 32-bit numbers that say so.
  ZipBuilder& end_64();

  Bytes finish() const;

 private:
  Bytes bytes_;
  Bytes directory_;
  Bytes before_;
  std::string comment_;
  std::size_t members_ = 0;
  bool end_64_ = false;
};

// Makes the directory's CRC-32 of every stored member right again after a test has changed its bytes.
void fix_zip_checksums(std::span<std::byte> archive);

// A .npy file, version 1. `type` and `shape` as in its header: "<f4", "(3, 2)".
Bytes make_npy(const std::string& type, const std::string& shape, std::span<const std::byte> data,
               bool fortran = false);

}  // namespace headrace::test
