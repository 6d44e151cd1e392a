#include "headrace/tests/support/archives.h"

#include <archive.h>
#include <archive_entry.h>
#include <zlib.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace headrace::test {
namespace {

constexpr std::size_t kBlock = 512;

}  // namespace

void fix_tar_checksum(std::span<std::byte> header) {
  std::fill_n(header.begin() + 148, 8, std::byte{' '});
  unsigned sum = 0;
  for (std::byte byte : header.first(kBlock)) sum += std::to_integer<unsigned>(byte);
  char digits[8];
  std::snprintf(digits, sizeof(digits), "%06o", sum);
  std::memcpy(header.data() + 148, digits, 7);
}

void TarBuilder::add_header(const std::string& path, std::uint64_t size, char type) {
  std::vector<char> header(kBlock, '\0');
  std::snprintf(header.data(), 100, "%s", path.c_str());
  std::snprintf(header.data() + 100, 8, "%07o", 0644U);
  std::snprintf(header.data() + 124, 12, "%011llo", static_cast<unsigned long long>(size));
  std::snprintf(header.data() + 136, 12, "%011o", 0U);
  header[156] = type;
  std::memcpy(header.data() + 257, "ustar\00000", 8);
  const auto bytes = std::as_writable_bytes(std::span(header));
  fix_tar_checksum(bytes);
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

void TarBuilder::add_data(std::span<const std::byte> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  bytes_.resize((bytes_.size() + kBlock - 1) / kBlock * kBlock);
}

TarBuilder& TarBuilder::add(const std::string& path, std::span<const std::byte> bytes, char type) {
  add_header(path, bytes.size(), type);
  add_data(bytes);
  return *this;
}

TarBuilder& TarBuilder::add_with_gnu_name(const std::string& path, std::span<const std::byte> bytes) {
  Bytes name = to_bytes(path);
  name.push_back(std::byte{0});
  add("././@LongLink", name, 'L');
  return add(path.substr(0, 99), bytes, '0');
}

TarBuilder& TarBuilder::add_with_pax(const std::string& path, std::span<const std::byte> bytes) {
  const auto record = [](const std::string& pair) {
    std::size_t length = pair.size() + 3;  // the blank, the line's end and at least one digit
    while (std::to_string(length).size() + pair.size() + 2 != length) ++length;
    return std::to_string(length) + " " + pair + "\n";
  };
  add("PaxHeader", to_bytes(record("path=" + path) + record("size=" + std::to_string(bytes.size()))), 'x');
  add_header("short", 0, '0');  // the pax size is the one that counts
  add_data(bytes);
  return *this;
}

Bytes TarBuilder::finish() const {
  Bytes bytes = bytes_;
  bytes.resize(bytes.size() + 2 * kBlock);
  return bytes;
}

Bytes gzip(std::span<const std::byte> bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc();
  Bytes packed(deflateBound(&stream, bytes.size()) + 64);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

Bytes zstd(std::span<const std::byte> bytes) {
  Bytes packed(bytes.size() + bytes.size() / 64 + 4096);
  std::size_t used = 0;
  archive* writer = archive_write_new();
  archive_write_add_filter_zstd(writer);
  archive_write_set_format_raw(writer);
  archive_write_set_bytes_per_block(writer, 0);
  archive_write_open_memory(writer, packed.data(), packed.size(), &used);
  archive_entry* entry = archive_entry_new();
  archive_entry_set_pathname(entry, "data");
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_write_header(writer, entry);
  const la_ssize_t written = archive_write_data(writer, bytes.data(), bytes.size());
  archive_entry_free(entry);
  const int closed = archive_write_close(writer);
  archive_write_free(writer);
  if (written != static_cast<la_ssize_t>(bytes.size()) || closed != ARCHIVE_OK) {
    throw std::runtime_error("libarchive cannot write zstd");
  }
  packed.resize(used);
  return packed;
}

}  // namespace headrace::test
