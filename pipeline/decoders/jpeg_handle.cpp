#include "headrace/pipeline/decoders/jpeg_handle.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>

#include <jerror.h>

#include "headrace/pipeline/decoders/jpeg_scan/jpeg_scan.h"

extern "C" {
#include <jpegint.h>
}

namespace headrace {
namespace {

// Returns true for frame headers, Huffman and arithmetic codes, scan, quantization, restart interval, and JFIF and
// Adobe, which define the colours.
bool makes_pixels(unsigned marker) {
  constexpr unsigned kScan = 0xDA, kQuantization = 0xDB, kRestartInterval = 0xDD, kJfif = 0xE0, kAdobe = 0xEE;
  switch (marker) {
    case kScan:
    case kQuantization:
    case kRestartInterval:
    case kJfif:
    case kAdobe: return true;
    default: return marker >= 0xC0 && marker <= 0xCF;
  }
}

// Returns whether bytes between two header segments look like a pixel-relevant segment that lost its marker.
// Skipping such a segment may change pixels; skipping any other bytes does not.
bool may_be_lost_segment(std::span<const std::byte> junk) noexcept {
  constexpr std::size_t kMarker = 2, kLength = 2;
  if (junk.size() < kMarker + kLength) return false;
  const auto at = [&](std::size_t i) { return std::to_integer<std::size_t>(junk[i]); };
  const std::size_t length = at(2) << 8 | at(3), rest = junk.size() - kMarker;  // without the marker
  if (!makes_pixels(static_cast<unsigned>(at(1)))) return false;
  const bool one_bit_off =
      std::popcount(at(0) ^ 0xFF) == 1;  // then an inner 0xFF may have been taken for a marker
  return length == rest || (one_bit_off && length > rest);
}

// Returns whether bytes after the entropy-coded data are padding: zeros, which some cameras write. Any others are
// considered left over by damage before them.
bool is_padding(std::span<const std::byte> junk) noexcept {
  return std::ranges::all_of(junk, [](std::byte byte) { return byte == std::byte{0}; });
}

constexpr JDIMENSION kRowsAtOnce = 8;

// Returns the bytes that libjpeg skipped in search of the next marker: those before the one it reads next.
std::span<const std::byte> skipped_bytes(const jpeg_decompress_struct& info, std::span<const std::byte> encoded) {
  const auto count = static_cast<std::size_t>(std::max(info.err->msg_parm.i[0], 0));
  const std::size_t end = encoded.size() - info.src->bytes_in_buffer;
  return count <= end ? encoded.subspan(end - count, count) : encoded.first(end);
}

// Returns whether a warning leaves every pixel as intended.
bool jpeg_warning_is_harmless(const jpeg_decompress_struct& info, std::span<const std::byte> encoded) {
  switch (info.err->msg_code) {
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
    case JWRN_BOGUS_ICC:
    case JWRN_NOT_SEQUENTIAL: return true;  // a sequential decoder does not use these numbers
    case JWRN_EXTRANEOUS_DATA: {
      const std::span<const std::byte> junk = skipped_bytes(info, encoded);
      return info.input_scan_number == 0 ? !may_be_lost_segment(junk) : is_padding(junk);
    }
    default: return false;
  }
}

}  // namespace

JpegHandle::JpegHandle(std::span<const std::byte> encoded) noexcept : encoded_(encoded) {
  info_.err = jpeg_std_error(&errors_);
  info_.client_data = this;
  errors_.error_exit = on_error;
  errors_.emit_message = on_message;
  errors_.output_message = ignore_output;
  source_.init_source = ignore;
  source_.fill_input_buffer = on_empty;
  source_.skip_input_data = on_skip;
  source_.resync_to_restart = jpeg_resync_to_restart;
  source_.term_source = ignore;
  source_.next_input_byte = reinterpret_cast<const JOCTET*>(encoded.data());
  source_.bytes_in_buffer = encoded.size();
}

JpegHandle::~JpegHandle() { jpeg_destroy_decompress(&info_); }

void JpegHandle::on_error(j_common_ptr info) {
  JpegHandle& handle = of(info);
  info->err->format_message(info, handle.words_);
  std::longjmp(handle.jump_, 1);
}

void JpegHandle::on_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  JpegHandle& handle = of(info);
  if (!jpeg_warning_is_harmless(handle.info_, handle.encoded_)) on_error(info);
  if (handle.warning_[0] == '\0') info->err->format_message(info, handle.warning_);
}

std::size_t JpegHandle::coefficient_bytes() noexcept {
  if (jpeg_has_multiple_scans(&info_) == FALSE) return 0;
  std::size_t blocks = 0;
  for (int c = 0; c < info_.num_components; ++c) {
    blocks += std::size_t{info_.comp_info[c].width_in_blocks} * info_.comp_info[c].height_in_blocks;
  }
  return blocks * sizeof(JBLOCK);
}

boolean JpegHandle::on_empty(j_decompress_ptr info) {
  info->err->msg_code = JERR_INPUT_EOF;
  on_error(reinterpret_cast<j_common_ptr>(info));
}

void JpegHandle::on_skip(j_decompress_ptr info, long count) {
  if (count <= 0) return;
  jpeg_source_mgr& source = *info->src;
  if (static_cast<std::size_t>(count) > source.bytes_in_buffer) ERREXIT(info, JERR_INPUT_EOF);
  source.next_input_byte += count;
  source.bytes_in_buffer -= static_cast<std::size_t>(count);
}

bool JpegHandle::out_of_memory() const noexcept { return errors_.msg_code == JERR_OUT_OF_MEMORY; }

bool JpegHandle::read_header() noexcept {
  if (setjmp(jump_) != 0) return false;
  jpeg_create_decompress(&info_);
  info_.src = &source_;
  jpeg_read_header(&info_, TRUE);
  const bool four = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
  info_.out_color_space = four ? JCS_CMYK : JCS_RGB;
  info_.dct_method = JDCT_ISLOW;
  info_.do_fancy_upsampling = TRUE;
  info_.do_block_smoothing = FALSE;  // it would make pixels depend on blocks outside a window
  return true;
}

bool JpegHandle::start() noexcept {
  if (setjmp(jump_) != 0) return false;
  jpeg_start_decompress(&info_);
  return true;
}

// decode_mcu has been the second member of the decoder since libjpeg 6b, in libjpeg-turbo 2 and 3 alike: a newer
// library than that of the header is no danger.
void JpegHandle::read_scan_with(JpegScan& scan) noexcept {
  scan_ = &scan;
  info_.entropy->decode_mcu = on_mcu;
}

boolean JpegHandle::on_mcu(j_decompress_ptr info, JBLOCKROW* blocks) {
  of(info).scan_->next_mcu(blocks);
  return TRUE;
}

bool JpegHandle::crop(JDIMENSION& left, JDIMENSION& width) noexcept {
  if (setjmp(jump_) != 0) return false;
  jpeg_crop_scanline(&info_, &left, &width);
  return true;
}

bool JpegHandle::skip(JDIMENSION rows) noexcept {
  if (setjmp(jump_) != 0) return false;
  if (rows > 0 && jpeg_skip_scanlines(&info_, rows) != rows) ERREXIT(&info_, JERR_INPUT_EOF);
  return true;
}

bool JpegHandle::read_rows(std::uint8_t* out, std::size_t stride, JDIMENSION count) noexcept {
  if (setjmp(jump_) != 0) return false;
  JDIMENSION done = 0;
  while (done < count) {
    JSAMPROW rows[kRowsAtOnce];
    const JDIMENSION wanted = std::min(count - done, kRowsAtOnce);
    for (JDIMENSION i = 0; i < wanted; ++i) rows[i] = out + (done + i) * stride;
    const JDIMENSION read = jpeg_read_scanlines(&info_, rows, wanted);
    if (read == 0) ERREXIT(&info_, JERR_INPUT_EOF);
    done += read;
  }
  return true;
}

bool JpegHandle::finish() noexcept {
  if (setjmp(jump_) != 0) return false;
  jpeg_finish_decompress(&info_);
  return true;
}

}  // namespace headrace
