#include <zlib.h>
#include <zstd.h>

#include "headrace/tests/support/archives.h"
#include "headrace/tests/support/test.h"

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

TarBuilder& TarBuilder::add_link(const std::string& path, const std::string& target, char type) {
  add_header(path, 0, type);
  const std::span<std::byte> header = std::span(bytes_).last(kBlock);
  std::memcpy(header.data() + 157, target.data(), target.size());
  fix_tar_checksum(header);
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

namespace {

Bytes deflate_all(std::span<const std::byte> bytes, int window_bits) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc();
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

void put(Bytes& to, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) to.push_back(static_cast<std::byte>(value >> (8 * i)));
}

void put(Bytes& to, std::span<const std::byte> bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

std::uint64_t number(std::span<const std::byte> bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value |= std::to_integer<std::uint64_t>(bytes[at + i]) << (8 * i);
  return value;
}

std::uint32_t crc_of(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

Bytes gzip(std::span<const std::byte> bytes) { return deflate_all(bytes, 15 + 16); }

Bytes zlib(std::span<const std::byte> bytes) { return deflate_all(bytes, 15); }

Bytes zstd(std::span<const std::byte> bytes) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  Bytes packed(ZSTD_compressBound(bytes.size()));
  const std::size_t size = ZSTD_compress2(context, packed.data(), packed.size(), bytes.data(), bytes.size());
  ZSTD_freeCCtx(context);
  if (ZSTD_isError(size) != 0) throw std::runtime_error("zstd cannot compress");
  packed.resize(size);
  return packed;
}

Bytes zstd_with_window(std::span<const std::byte> bytes, int window_log) {
  constexpr std::size_t kMaxBlock = std::size_t{1} << 16;
  Bytes frame;
  put(frame, 0xFD2FB528, 4);
  put(frame, 0, 1);  // no content size, no checksum: a window descriptor follows
  put(frame, static_cast<std::uint64_t>(window_log - 10) << 3, 1);
  do {
    const std::size_t size = std::min(bytes.size(), kMaxBlock);
    put(frame, size << 3 | (size == bytes.size() ? 1 : 0), 3);
    put(frame, bytes.first(size));
    bytes = bytes.subspan(size);
  } while (!bytes.empty());
  return frame;
}

Bytes pzstd(std::span<const std::byte> bytes, std::size_t bytes_a_frame) {
  Bytes packed;
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.size(), bytes_a_frame);
    const Bytes frame = zstd(bytes.first(size));
    put(packed, 0x184D2A50, 4);
    put(packed, 4, 4);
    put(packed, frame.size(), 4);
    put(packed, frame);
    bytes = bytes.subspan(size);
  }
  return packed;
}

ZipBuilder& ZipBuilder::add(const std::string& path, std::span<const std::byte> bytes, bool deflated) {
  return add(Member{.path = path, .bytes = to_bytes(bytes), .deflated = deflated});
}

ZipBuilder& ZipBuilder::add(Member member) {
  constexpr unsigned kDescriptor = 8;
  constexpr std::uint64_t kIn64 = 0xFFFFFFFF;
  const Bytes packed = member.deflated ? deflate_all(member.bytes, -15) : member.bytes;
  const unsigned flags = member.flags | (member.has_descriptor ? kDescriptor : 0);
  const unsigned method = member.method != ~0U ? member.method : member.deflated ? 8 : 0;
  const std::uint64_t offset = bytes_.size(), crc = crc_of(member.bytes);
  Bytes extra;  // numbers that 32 bits would not hold
  if (member.is_64) {
    put(extra, 1, 2);
    put(extra, 24, 2);
    put(extra, member.bytes.size(), 8);
    put(extra, packed.size(), 8);
    put(extra, offset, 8);
  }
  const auto put_common = [&](Bytes& to, bool is_known) {
    put(to, flags, 2);
    put(to, method, 2);
    put(to, 0, 4);  // time and date
    put(to, is_known ? crc : 0, 4);
    put(to, !is_known ? 0 : member.is_64 ? kIn64 : packed.size(), 4);
    put(to, !is_known ? 0 : member.is_64 ? kIn64 : member.bytes.size(), 4);
    put(to, member.path.size(), 2);
  };
  put(bytes_, 0x04034B50, 4);
  put(bytes_, 20, 2);
  put_common(bytes_, !member.has_descriptor);
  put(bytes_, 5, 2);  // extra bytes here alone: data are not where the directory's lengths would put them
  put(bytes_, to_bytes(member.path));
  put(bytes_, 0xCAFE, 2);
  put(bytes_, 1, 3);
  put(bytes_, packed);
  if (member.has_descriptor) {
    put(bytes_, 0x08074B50, 4);
    put(bytes_, crc, 4);
    put(bytes_, packed.size(), 4);
    put(bytes_, member.bytes.size(), 4);
  }

  put(directory_, 0x02014B50, 4);
  put(directory_, 20 | member.system << 8, 2);
  put(directory_, 20, 2);
  put_common(directory_, true);
  put(directory_, extra.size(), 2);
  put(directory_, 0, 6);  // comment, disk, internal attributes
  put(directory_, member.attributes, 4);
  put(directory_, member.is_64 ? kIn64 : offset, 4);
  put(directory_, to_bytes(member.path));
  put(directory_, extra);
  ++members_;
  return *this;
}

ZipBuilder& ZipBuilder::put_before(std::span<const std::byte> bytes) {
  before_ = to_bytes(bytes);
  return *this;
}

ZipBuilder& ZipBuilder::comment(const std::string& text) {
  comment_ = text;
  return *this;
}

ZipBuilder& ZipBuilder::end_64() {
  end_64_ = true;
  return *this;
}

Bytes ZipBuilder::finish() const {
  Bytes archive = before_;
  put(archive, bytes_);
  put(archive, directory_);
  if (end_64_) {
    const std::uint64_t at = bytes_.size() + directory_.size();
    put(archive, 0x06064B50, 4);
    put(archive, 44, 8);
    put(archive, 45 | 45 << 16, 4);
    put(archive, 0, 8);  // disks
    put(archive, members_, 8);
    put(archive, members_, 8);
    put(archive, directory_.size(), 8);
    put(archive, bytes_.size(), 8);
    put(archive, 0x07064B50, 4);
    put(archive, 0, 4);
    put(archive, at, 8);
    put(archive, 1, 4);
  }
  put(archive, 0x06054B50, 4);
  put(archive, 0, 4);
  put(archive, end_64_ ? 0xFFFF : members_, 2);
  put(archive, end_64_ ? 0xFFFF : members_, 2);
  put(archive, end_64_ ? 0xFFFFFFFF : directory_.size(), 4);
  put(archive, end_64_ ? 0xFFFFFFFF : bytes_.size(), 4);
  put(archive, comment_.size(), 2);
  put(archive, to_bytes(comment_));
  return archive;
}

void fix_zip_checksums(std::span<std::byte> archive) {
  for (std::size_t at = 0; at + 46 <= archive.size(); ++at) {
    const std::span<std::byte> entry = archive.subspan(at);
    if (number(entry, 0, 4) != 0x02014B50 || number(entry, 10, 2) != 0) continue;
    const std::uint64_t size = number(entry, 20, 4), header = number(entry, 42, 4);
    if (header > archive.size() - 30) continue;
    const std::uint64_t data = header + 30 + number(archive, header + 26, 2) + number(archive, header + 28, 2);
    if (data > archive.size() || size > archive.size() - data) continue;
    const std::uint32_t crc = crc_of(archive.subspan(data, size));
    std::memcpy(entry.data() + 16, &crc, sizeof crc);
  }
}

Bytes make_npy(const std::string& type, const std::string& shape, std::span<const std::byte> data, bool fortran) {
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape + ", }";
  header.resize((header.size() + 10 + 1 + 63) / 64 * 64 - 11, ' ');
  header += '\n';
  Bytes file = to_bytes("\x93NUMPY");
  put(file, 1, 2);
  put(file, header.size(), 2);
  put(file, to_bytes(header));
  put(file, data);
  return file;
}

}  // namespace headrace::test
