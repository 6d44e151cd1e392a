#include "headrace/pipeline/sources/archives/stored_file.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources/bytes.h"

namespace headrace {
namespace {

constexpr std::uint32_t kLocalHeader = 0x04034B50;
constexpr std::size_t kLocalBytes = 30;  // before the name and the extra fields, whose lengths it ends with
constexpr std::uint64_t kMaxImage = std::uint64_t{1} << 30;
constexpr int kRawDeflate = -15;  // zlib's window bits for a stream without a wrapper

class Inflater {
 public:
  Inflater() {
    if (inflateInit2(&stream_, kRawDeflate) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Returns whether the packed bytes are one complete deflate stream that unpacks to exactly into.size() bytes.
  bool inflate_all(std::span<const std::byte> packed, std::span<std::byte> into) {
    inflateReset(&stream_);
    // zlib's interface is older than const; it does not write there.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
    std::byte none{};  // zlib wants a place even for nothing
    stream_.next_out = reinterpret_cast<Bytef*>(into.empty() ? &none : into.data());
    std::size_t packed_left = packed.size(), left = into.size();
    stream_.avail_in = stream_.avail_out = 0;
    int status = Z_OK;
    // In portions: zlib counts in 32 bits. An empty portion at the end lets it see the end of the stream.
    while (status == Z_OK) {
      if (stream_.avail_in == 0) packed_left -= stream_.avail_in = portion(packed_left);
      if (stream_.avail_out == 0) left -= stream_.avail_out = portion(left);
      status = inflate(&stream_, Z_NO_FLUSH);
    }
    return status == Z_STREAM_END && stream_.avail_in == 0 && packed_left == 0 && stream_.avail_out == 0 &&
           left == 0;
  }

 private:
  static uInt portion(std::size_t left) {
    return static_cast<uInt>(std::min<std::size_t>(left, std::numeric_limits<uInt>::max()));
  }

  z_stream stream_{};
};

class ZipData {
 public:
  ZipData(const StoredFile& file, const std::string& archive, const ReadAt& read_at)
      : file_(file), archive_(archive), read_at_(read_at) {}

  void read(std::span<std::byte> into) const {
    const std::uint64_t begin = data_offset();
    if (file_.kind == StoredFile::Kind::kZipStored) {
      read_at_(begin, into);
    } else {
      inflate(begin, into);
    }
    if (crc32_z(0, reinterpret_cast<const Bytef*>(into.data()), into.size()) != file_.crc) {
      fail("the CRC-32 of its bytes does not hold");
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(ErrorCode::kDataCorrupt, what, {.source = archive_, .offset = file_.offset},
                    "download or copy the archive again");
  }

  // The local header's own sizes may be missing (a data descriptor follows the data): the directory has them.
  std::uint64_t data_offset() const {
    std::array<std::byte, kLocalBytes> header;
    read_at_(file_.offset, header);
    if (little_endian(header, 0, 4) != kLocalHeader) fail("where its header should be there is none");
    return file_.offset + kLocalBytes + little_endian(header, 26, 2) + little_endian(header, 28, 2);
  }

  void inflate(std::uint64_t begin, std::span<std::byte> into) const {
    static thread_local Inflater inflater;
    BorrowedBytes packed;
    (*packed).resize(static_cast<std::size_t>(file_.packed_size));
    read_at_(begin, *packed);
    if (!inflater.inflate_all(*packed, into)) fail("its deflated data are damaged");
  }

  const StoredFile& file_;
  const std::string& archive_;
  const ReadAt& read_at_;
};

}  // namespace

ByteExtent extent_of(const StoredFile& file) noexcept {
  constexpr std::uint64_t kNameAndExtra = 256;
  if (file.kind == StoredFile::Kind::kPlain) return {.offset = file.offset, .size = file.size};
  return {.offset = file.offset, .size = kLocalBytes + kNameAndExtra + file.packed_size, .used = file.packed_size};
}

void read_stored(const StoredFile& file, const std::string& archive, const ReadAt& read_at,
                 std::span<std::byte> into) {
  if (file.kind == StoredFile::Kind::kPlain) return read_at(file.offset, into);
  ZipData(file, archive, read_at).read(into);
}

std::span<const std::byte> read_stored_image(const StoredFile& file, const std::string& archive,
                                             const ReadAt& read_at, std::vector<std::byte>& scratch) {
  if (file.kind == StoredFile::Kind::kZipDeflated && file.size > kMaxImage) {
    throw DataError(ErrorCode::kDataCorrupt,
                    "it says that it unpacks to " + std::to_string(file.size) + " bytes: no image has as many",
                    {.source = archive, .offset = file.offset});
  }
  const auto size = static_cast<std::size_t>(file.size);
  if (scratch.size() < size) scratch.resize(size);
  read_stored(file, archive, read_at, std::span(scratch).first(size));
  return std::span<const std::byte>(scratch).first(size);
}

}  // namespace headrace
