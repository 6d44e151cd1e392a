#include "headrace/pipeline/decoders/png_reader.h"

#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>

#include <png.h>

#include "headrace/devices/base/failures.h"
#include "headrace/pipeline/decoders/image_size.h"

namespace headrace {
namespace {

// Wraps libpng in calls that return whether they succeeded. One image from its header to its rows, as 8-bit RGB.
// libpng reports errors by longjmp: each call sets the jump target and has no C++ object for the jump to skip.
// After a call that returned false only words() may be called.
class PngHandle {
 public:
  // REQUIRES: `encoded` outlives the handle.
  explicit PngHandle(std::span<const std::byte> encoded) noexcept : encoded_(encoded) {}
  ~PngHandle();
  PngHandle(const PngHandle&) = delete;
  PngHandle& operator=(const PngHandle&) = delete;

  bool read_header() noexcept;
  // Sets the conversion to RGB.
  bool start() noexcept;
  // Sets the conversion to one byte a pixel, holding the stored number. REQUIRES: has_numbers().
  bool start_numbers() noexcept;
  // Returns whether a pixel is one number of up to 8 bits. REQUIRES: the header was read.
  bool has_numbers() const noexcept {
    const auto type = png_get_color_type(png_, info_);
    return (type == PNG_COLOR_TYPE_GRAY || type == PNG_COLOR_TYPE_PALETTE) && png_get_bit_depth(png_, info_) <= 8;
  }
  // Reads one row. If passes() > 1, all rows come once per pass, and `out` must hold the previous pass's row.
  bool read_row(std::uint8_t* out) noexcept;
  // Reads to the end of the file: the checksums of all chunks and that of the pixels' zlib stream.
  bool finish() noexcept;

  std::uint32_t height() const noexcept { return height_; }
  std::uint32_t width() const noexcept { return width_; }
  // REQUIRES: the header was read.
  bool is_interlaced() const noexcept { return png_get_interlace_type(png_, info_) != PNG_INTERLACE_NONE; }
  int passes() const noexcept { return passes_; }
  // Returns the bytes of a row.
  std::size_t row_bytes() const noexcept { return row_bytes_; }
  // Returns the library's error message.
  const char* words() const noexcept { return words_; }
  // Returns the library's message on the first flaw so far that changes no pixel; empty: none.
  const char* warning() const noexcept { return warning_; }

 private:
  static void on_error(png_structp png, png_const_charp words);
  static void on_warning(png_structp png, png_const_charp words);
  static void on_read(png_structp png, png_bytep into, std::size_t count);

  std::span<const std::byte> encoded_;  // the unread rest
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::uint32_t height_ = 0;
  std::uint32_t width_ = 0;
  int passes_ = 1;
  std::size_t row_bytes_ = 0;
  std::jmp_buf jump_;
  char words_[256] = {};
  char warning_[256] = {};
};

constexpr std::uint32_t kMaxPngSide = std::uint32_t{1} << 28;

// Returns whether a libpng warning about the pixel data is harmless: data after the end of the zlib stream is.
// Anything else, such as a wrong checksum of that stream, may mean other pixels.
bool png_warning_is_harmless(const char* words) {
  return std::strstr(words, "Extra compressed data") != nullptr ||
         std::strstr(words, "Too much image data") != nullptr ||
         std::strstr(words, "Too many IDATs found") != nullptr;
}

PngHandle::~PngHandle() { png_destroy_read_struct(&png_, &info_, nullptr); }

void PngHandle::on_error(png_structp png, png_const_charp words) {
  auto* handle = static_cast<PngHandle*>(png_get_error_ptr(png));
  std::snprintf(handle->words_, sizeof(handle->words_), "%s", words);
  std::longjmp(handle->jump_, 1);
}

void PngHandle::on_warning(png_structp png, png_const_charp words) {
  auto* handle = static_cast<PngHandle*>(png_get_error_ptr(png));
  if (handle->row_bytes_ == 0) return;  // still in the header, where libpng's warnings are irrelevant
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
  // Only pixel-relevant chunks are read (header, palette, transparency, data), and these must be flawless.
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
  png_set_benign_errors(png_, 1);  // from here on_warning() decides which are benign
  return true;
}

bool PngHandle::start_numbers() noexcept {
  if (setjmp(jump_) != 0) return false;
  png_set_packing(png_);
  passes_ = png_set_interlace_handling(png_);
  png_read_update_info(png_, info_);
  row_bytes_ = png_get_rowbytes(png_, info_);
  png_set_benign_errors(png_, 1);
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

void require_png(bool done, const PngHandle& png) {
  if (!done) throw Error(ErrorCode::kDataCorrupt, std::string("bad PNG: ") + png.words());
}

ImageSize open_png(PngHandle& png) {
  require_png(png.read_header(), png);
  const ImageSize size{.height = png.height(), .width = png.width()};
  check_pixels(size.height, size.width);
  return size;
}

void start(PngHandle& png) {
  require_png(png.start(), png);
  HEADRACE_CHECK(png.row_bytes() == std::size_t{png.width()} * 3, "libpng gives other rows than 8-bit RGB");
}

// Reads all rows, once per pass of the image.
void read_rows(PngHandle& png, std::uint8_t* out) {
  for (int pass = 0; pass < png.passes(); ++pass) {
    for (std::size_t row = 0; row < png.height(); ++row)
      require_png(png.read_row(out + row * png.row_bytes()), png);
  }
}

}  // namespace

ImageSize PngReader::read_size(std::span<const std::byte> encoded) {
  PngHandle png(encoded);
  const ImageSize size = open_png(png);
  window_bytes_ = png.is_interlaced() ? static_cast<std::size_t>(size.height * size.width * 3) : 0;
  return size;
}

void PngReader::decode(std::span<const std::byte> encoded, std::span<std::uint8_t> rgb) {
  PngHandle png(encoded);
  const ImageSize size = open_png(png);
  check_window(size, {.height = size.height, .width = size.width}, rgb.size());
  start(png);
  read_rows(png, rgb.data());
  require_png(png.finish(), png);
  warning_ = png.warning();
}

void PngReader::decode_numbers(std::span<const std::byte> encoded, std::span<std::uint8_t> numbers) {
  PngHandle png(encoded);
  const ImageSize size = open_png(png);
  HEADRACE_CHECK(numbers.size() == static_cast<std::size_t>(size.height * size.width), "a mask of another size");
  if (!png.has_numbers()) {
    throw Error(ErrorCode::kDataCorrupt, "a PNG with colours, alpha or 16 bits is no mask",
                "save the mask as a grey PNG of 8 bits, or one with a palette");
  }
  require_png(png.start_numbers(), png);
  HEADRACE_CHECK(png.row_bytes() == std::size_t{png.width()}, "libpng gives other rows than bytes");
  read_rows(png, numbers.data());
  require_png(png.finish(), png);
  warning_ = png.warning();
}

void PngReader::decode_window(std::span<const std::byte> encoded, const ImageWindow& window,
                              std::span<std::uint8_t> rgb) {
  PngHandle png(encoded);
  check_window(open_png(png), window, rgb.size());
  start(png);
  const std::size_t row_bytes = png.row_bytes(), left = static_cast<std::size_t>(window.left) * 3;
  const auto top = static_cast<std::size_t>(window.top), height = static_cast<std::size_t>(window.height);
  const std::size_t wanted = static_cast<std::size_t>(window.width) * 3;
  // The passes of an interlaced image need the whole image in memory.
  std::vector<std::uint8_t> whole(png.is_interlaced() ? row_bytes * png.height() : 0);
  if (!whole.empty()) read_rows(png, whole.data());
  if (whole.empty()) row_.resize(std::max(row_.size(), row_bytes));
  for (std::size_t row = 0; row < png.height(); ++row) {
    if (whole.empty()) require_png(png.read_row(row_.data()), png);
    if (row < top || row >= top + height) continue;
    const std::uint8_t* line = whole.empty() ? row_.data() : whole.data() + row * row_bytes;
    std::memcpy(rgb.data() + (row - top) * wanted, line + left, wanted);
  }
  require_png(png.finish(), png);
  warning_ = png.warning();
}

std::string PngReader::identity() { return std::string("libpng ") + png_get_libpng_ver(nullptr); }

}  // namespace headrace
