// Files that are unpacked while they are read: gzip, zlib and zstd.
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <new>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/sources/archives/byte_input.h"

namespace headrace {
namespace {

// zlib's window bits for the one wrapper.
constexpr int kGzipOnly = 15 + 16, kZlibOnly = 15;
constexpr std::uint64_t kMaxDeflateGain = 1032;  // maximum of unpacked bytes per deflated byte

class DeflatedInput final : public ByteInput {
 public:
  DeflatedInput(const std::filesystem::path& path, DeflateWrapper wrapper)
      : ByteInput(path.string()), file_(path), wrapper_(wrapper) {
    if (inflateInit2(&stream_, is_gzip() ? kGzipOnly : kZlibOnly) != Z_OK) throw std::bad_alloc();
  }
  ~DeflatedInput() override { inflateEnd(&stream_); }

  void read_ahead(std::uint64_t bytes_before) override { file_.read_ahead(bytes_before); }
  std::uint64_t max_left() const noexcept override {
    // The decoder's pending output (at most its 32 KiB window and one match) is added.
    return (file_.max_left() + stream_.avail_in + 1024) * kMaxDeflateGain;
  }

 private:
  bool is_gzip() const noexcept { return wrapper_ == DeflateWrapper::kGzip; }

  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(
        ErrorCode::kDataCorrupt, std::string("damaged ") + (is_gzip() ? "gzip" : "zlib") + " data: " + what,
        {.source = name(), .offset = file_.position() - stream_.avail_in}, "download or copy the file again");
  }

  void refill() {
    const std::span<const std::byte> piece = file_.next_piece();
    // zlib's interface is older than const; it does not write there.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(piece.data()));
    stream_.avail_in = static_cast<uInt>(piece.size());
  }

  void pass_padding() {
    for (;;) {
      while (stream_.avail_in > 0 && *stream_.next_in == 0) {
        ++stream_.next_in;
        --stream_.avail_in;
      }
      if (stream_.avail_in > 0) return;
      refill();
      if (stream_.avail_in == 0) return;
    }
  }

  std::size_t read_some(std::span<std::byte> into) override {
    const std::size_t wanted = std::min<std::size_t>(into.size(), std::numeric_limits<uInt>::max());
    stream_.next_out = reinterpret_cast<Bytef*>(into.data());
    stream_.avail_out = static_cast<uInt>(wanted);
    while (stream_.avail_out == wanted) {
      if (!within_member_ && is_gzip()) pass_padding();
      if (stream_.avail_in == 0) refill();
      if (stream_.avail_in == 0) {
        if (within_member_) fail("it ends early");
        return 0;
      }
      if (!within_member_) {  // another member follows
        inflateReset(&stream_);
        within_member_ = true;
      }
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (status == Z_STREAM_END) {
        within_member_ = false;
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        fail(stream_.msg != nullptr ? stream_.msg : zError(status));
      }
    }
    return wanted - stream_.avail_out;
  }

  FileInput file_;
  DeflateWrapper wrapper_;
  z_stream stream_{};
  bool within_member_ = true;  // false after a member's checksum was found good
};

// A zstd block of 4 bytes unpacks to at most 128 KiB.
constexpr std::uint64_t kMaxZstdGain = (std::uint64_t{128} << 10) / 4;
constexpr int kUsualWindowLog = 27;
constexpr int kMaxWindowLog = 31;  // zstd --long=31

class ZstdInput final : public ByteInput {
 public:
  ZstdInput(const std::filesystem::path& path, std::uint64_t window_limit)
      : ByteInput(path.string()),
        file_(path),
        max_window_log_(
            std::clamp(static_cast<int>(std::bit_width(window_limit)) - 1, kUsualWindowLog, kMaxWindowLog)),
        context_(ZSTD_createDCtx()) {
    if (context_ == nullptr) throw std::bad_alloc();
    ZSTD_DCtx_setParameter(context_, ZSTD_d_windowLogMax, max_window_log_);
  }
  ~ZstdInput() override { ZSTD_freeDCtx(context_); }

  void read_ahead(std::uint64_t bytes_before) override { file_.read_ahead(bytes_before); }
  std::uint64_t max_left() const noexcept override {
    // The decoder's pending output (at most a few blocks) is added.
    return (file_.max_left() + (packed_.size - packed_.pos) + 64) * kMaxZstdGain;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(ErrorCode::kDataCorrupt, "damaged zstd data: " + what,
                    {.source = name(), .offset = file_.position() - (packed_.size - packed_.pos)},
                    "download or copy the file again");
  }

  [[noreturn]] void fail_with(std::size_t status) const {
    const ZSTD_ErrorCode code = ZSTD_getErrorCode(status);
    if (code == ZSTD_error_frameParameter_windowTooLarge) {
      throw DataError(ErrorCode::kOutOfMemory,
                      "unpacking needs a zstd window of more than " +
                          std::to_string((std::uint64_t{1} << max_window_log_) >> 20) +
                          " MiB of memory (zstd --long writes such files)",
                      {.source = name()},
                      joined({"unpack it first: zstd -d --long=31",
                              advice("raise {}", named("ArchiveOptions::memory_limit"))}));
    }
    if (code == ZSTD_error_memory_allocation) {
      throw DataError(ErrorCode::kOutOfMemory, "there is no memory for its zstd window", {.source = name()},
                      "unpack it first: zstd -d --long=31 on a machine with more memory");
    }
    fail(ZSTD_getErrorName(status));
  }

  std::size_t read_some(std::span<std::byte> into) override {
    ZSTD_outBuffer unpacked{.dst = into.data(), .size = into.size(), .pos = 0};
    while (unpacked.pos == 0) {
      if (packed_.pos == packed_.size) {
        const std::span<const std::byte> piece = file_.next_piece();
        packed_ = {.src = piece.data(), .size = piece.size(), .pos = 0};
      }
      const bool at_end = packed_.size == 0;
      if (at_end && !within_frame_) return 0;
      // Called at the end of the file, too: what the decoder holds back comes without further input.
      const std::size_t status = ZSTD_decompressStream(context_, &unpacked, &packed_);
      if (ZSTD_isError(status) != 0) fail_with(status);
      within_frame_ = status != 0;
      if (at_end && within_frame_ && unpacked.pos == 0) fail("it ends early");
    }
    return unpacked.pos;
  }

  FileInput file_;
  int max_window_log_;
  ZSTD_DCtx* context_;
  ZSTD_inBuffer packed_{};
  bool within_frame_ = true;  // a file without a frame is invalid
};

}  // namespace

std::unique_ptr<ByteInput> open_deflated(const std::filesystem::path& path, DeflateWrapper wrapper) {
  return std::make_unique<DeflatedInput>(path, wrapper);
}

std::unique_ptr<ByteInput> open_zstd(const std::filesystem::path& path, std::uint64_t window_limit) {
  return std::make_unique<ZstdInput>(path, window_limit);
}

}  // namespace headrace
