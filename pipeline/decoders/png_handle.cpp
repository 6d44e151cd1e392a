#include "headrace/pipeline/decoders/png_handle.h"

#include <cstdio>
#include <cstring>

namespace headrace {
namespace {

constexpr std::uint32_t kMaxPngSide = std::uint32_t{1} << 28;

// Whether a libpng warning about the pixel data is harmless: data after the end of the zlib stream is. Anything
// else, such as a wrong checksum of that stream, may mean other pixels.
bool png_warning_is_harmless(const char* words) {
  return std::strstr(words, "Extra compressed data") != nullptr ||
         std::strstr(words, "Too much image data") != nullptr ||
         std::strstr(words, "Too many IDATs found") != nullptr;
}

}  // namespace

PngHandle::~PngHandle() { png_destroy_read_struct(&png_, &info_, nullptr); }

void PngHandle::on_error(png_structp png, png_const_charp words) {
  auto* handle = static_cast<PngHandle*>(png_get_error_ptr(png));
  std::snprintf(handle->words_, sizeof(handle->words_), "%s", words);
  std::longjmp(handle->jump_, 1);
}

void PngHandle::on_warning(png_structp png, png_const_charp words) {
  auto* handle = static_cast<PngHandle*>(png_get_error_ptr(png));
  if (handle->row_bytes_ == 0) return;  // still in the header, where libpng warns of nothing that counts
  if (!png_warning_is_harmless(words)) on_error(png, words);
  if (handle->warning_[0] == '\0') std::snprintf(handle->warning_, sizeof(handle->warning_), "%s", words);
}

void PngHandle::on_read(png_structp png, png_bytep into, std::size_t count) {
  auto* handle = static_cast<PngHandle*>(png_get_io_ptr(png));
  if (count > handle->encoded_.size()) png_error(png, "the file ends early");
  std::memcpy(into, handle->encoded_.data(), count);
  handle->encoded_ = handle->encoded_.subspan(count);
}

bool PngHandle::read_header() noexcept {
  if (setjmp(jump_) != 0) return false;
  png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
  if (png_ == nullptr) {
    std::snprintf(words_, sizeof(words_), "libpng has no memory, or is not version %s", PNG_LIBPNG_VER_STRING);
    return false;
  }
  info_ = png_create_info_struct(png_);
  if (info_ == nullptr) png_error(png_, "no memory");
  png_set_read_fn(png_, this, on_read);
  png_set_user_limits(png_, kMaxPngSide, kMaxPngSide);
  // Only what makes the pixels is looked at (header, palette, transparency, data), and there all must be right.
  png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
  png_set_benign_errors(png_, 0);
  png_read_info(png_, info_);
  height_ = png_get_image_height(png_, info_);
  width_ = png_get_image_width(png_, info_);
  return true;
}

bool PngHandle::start() noexcept {
  if (setjmp(jump_) != 0) return false;
  png_set_expand(png_);  // palettes and 1, 2, 4 bits to 8
  png_set_scale_16(png_);
  png_set_strip_alpha(png_);
  png_set_gray_to_rgb(png_);
  passes_ = png_set_interlace_handling(png_);
  png_read_update_info(png_, info_);
  row_bytes_ = png_get_rowbytes(png_, info_);
  png_set_benign_errors(png_, 1);  // from here on on_warning() tells which of them are
  return true;
}

bool PngHandle::read_row(std::uint8_t* out) noexcept {
  if (setjmp(jump_) != 0) return false;
  png_read_row(png_, out, nullptr);
  return true;
}

bool PngHandle::finish() noexcept {
  if (setjmp(jump_) != 0) return false;
  png_read_end(png_, nullptr);
  return true;
}

}  // namespace headrace
