#include "headrace/pipeline/sources/archives/zstd_input.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <bit>
#include <new>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"

namespace headrace {
namespace {

// A zstd block of 4 bytes unpacks to at most 128 KiB.
constexpr std::uint64_t kMaxZstdGain = (std::uint64_t{128} << 10) / 4;
constexpr int kUsualWindowLog = 27;
constexpr int kMaxWindowLog = 31;  // zstd --long=31

int log_of(std::uint64_t limit) {
  return std::clamp(static_cast<int>(std::bit_width(limit)) - 1, kUsualWindowLog, kMaxWindowLog);
}

}  // namespace

struct ZstdInput::Decoder {
  explicit Decoder(int window_log) : max_window_log(window_log), context(ZSTD_createDCtx()) {
    if (context == nullptr) throw std::bad_alloc();
    ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, max_window_log);
  }
  ~Decoder() { ZSTD_freeDCtx(context); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  int max_window_log;
  ZSTD_DCtx* context;
  ZSTD_inBuffer packed{};
};

ZstdInput::ZstdInput(const std::filesystem::path& path, std::uint64_t window_limit)
    : ByteInput(path.string()), file_(path), decoder_(std::make_unique<Decoder>(log_of(window_limit))) {}

ZstdInput::~ZstdInput() = default;

std::uint64_t ZstdInput::max_left() const noexcept {
  // The decoder's pending output (at most a few blocks) is added.
  const std::uint64_t packed = file_.max_left() + (decoder_->packed.size - decoder_->packed.pos) + 64;
  return packed * kMaxZstdGain;
}

void ZstdInput::fail(const std::string& what) const {
  throw DataError(ErrorCode::kDataCorrupt, "damaged zstd data: " + what,
                  {.source = name(), .offset = file_.position() - (decoder_->packed.size - decoder_->packed.pos)},
                  "download or copy the file again");
}

void ZstdInput::fail_with(std::size_t status) const {
  const ZSTD_ErrorCode code = ZSTD_getErrorCode(status);
  if (code == ZSTD_error_frameParameter_windowTooLarge) {
    throw DataError(
        ErrorCode::kOutOfMemory,
        "unpacking needs a zstd window of more than " +
            std::to_string((std::uint64_t{1} << decoder_->max_window_log) >> 20) +
            " MiB of memory (zstd --long writes such files)",
        {.source = name()},
        joined({"unpack it first: zstd -d --long=31", advice("raise {}", named("ArchiveOptions::memory_limit"))}));
  }
  if (code == ZSTD_error_memory_allocation) {
    throw DataError(ErrorCode::kOutOfMemory, "there is no memory for its zstd window", {.source = name()},
                    "unpack it first: zstd -d --long=31 on a machine with more memory");
  }
  fail(ZSTD_getErrorName(status));
}

std::size_t ZstdInput::read_some(std::span<std::byte> into) {
  ZSTD_outBuffer unpacked{.dst = into.data(), .size = into.size(), .pos = 0};
  ZSTD_inBuffer& packed = decoder_->packed;
  while (unpacked.pos == 0) {
    if (packed.pos == packed.size) {
      const std::span<const std::byte> piece = file_.next_piece();
      packed = {.src = piece.data(), .size = piece.size(), .pos = 0};
    }
    const bool at_end = packed.size == 0;
    if (at_end && !within_frame_) return 0;
    // Called at the end of the file, too: what the decoder holds back comes without further input.
    const std::size_t status = ZSTD_decompressStream(decoder_->context, &unpacked, &packed);
    if (ZSTD_isError(status) != 0) fail_with(status);
    within_frame_ = status != 0;
    if (at_end && within_frame_ && unpacked.pos == 0) fail("it ends early");
  }
  return unpacked.pos;
}

}  // namespace headrace
