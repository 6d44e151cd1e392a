#include "headrace/pipeline/sources/archives/gzip_input.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

// zlib's window bits for the one wrapper.
constexpr int kGzipOnly = 15 + 16, kZlibOnly = 15;
constexpr std::uint64_t kMaxDeflateGain = 1032;  // maximum of unpacked bytes per deflated byte

const char* wrapper_name(GzipInput::Wrapper wrapper) {
  return wrapper == GzipInput::Wrapper::kGzip ? "gzip" : "zlib";
}

}  // namespace

struct GzipInput::Inflater {
  z_stream stream{};
  bool within_member = true;  // false after a member's checksum was found good

  explicit Inflater(Wrapper wrapper) {
    if (inflateInit2(&stream, wrapper == Wrapper::kGzip ? kGzipOnly : kZlibOnly) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
};

GzipInput::GzipInput(const std::filesystem::path& path, Wrapper wrapper)
    : ByteInput(path.string()), file_(path), wrapper_(wrapper), inflater_(std::make_unique<Inflater>(wrapper)) {}

GzipInput::~GzipInput() = default;

std::uint64_t GzipInput::max_left() const noexcept {
  // The decoder's pending output (at most its 32 KiB window and one match) is added.
  return (file_.max_left() + inflater_->stream.avail_in + 1024) * kMaxDeflateGain;
}

void GzipInput::fail(const std::string& what) const {
  throw DataError(ErrorCode::kDataCorrupt, std::string("damaged ") + wrapper_name(wrapper_) + " data: " + what,
                  {.source = name(), .offset = file_.position() - inflater_->stream.avail_in},
                  "download or copy the file again");
}

void GzipInput::refill() {
  const std::span<const std::byte> piece = file_.next_piece();
  // zlib's interface is older than const; it does not write there.
  inflater_->stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(piece.data()));
  inflater_->stream.avail_in = static_cast<uInt>(piece.size());
}

void GzipInput::pass_padding() {
  z_stream& stream = inflater_->stream;
  for (;;) {
    while (stream.avail_in > 0 && *stream.next_in == 0) {
      ++stream.next_in;
      --stream.avail_in;
    }
    if (stream.avail_in > 0) return;
    refill();
    if (stream.avail_in == 0) return;
  }
}

std::size_t GzipInput::read_some(std::span<std::byte> into) {
  z_stream& stream = inflater_->stream;
  const std::size_t wanted = std::min<std::size_t>(into.size(), std::numeric_limits<uInt>::max());
  stream.next_out = reinterpret_cast<Bytef*>(into.data());
  stream.avail_out = static_cast<uInt>(wanted);
  while (stream.avail_out == wanted) {
    if (!inflater_->within_member && wrapper_ == Wrapper::kGzip) pass_padding();
    if (stream.avail_in == 0) refill();
    if (stream.avail_in == 0) {
      if (inflater_->within_member) fail("it ends early");
      return 0;
    }
    if (!inflater_->within_member) {  // another member follows
      inflateReset(&stream);
      inflater_->within_member = true;
    }
    const int status = inflate(&stream, Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
      inflater_->within_member = false;
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      fail(stream.msg != nullptr ? stream.msg : zError(status));
    }
  }
  return wanted - stream.avail_out;
}

}  // namespace headrace
