// libpng behind calls that return whether they succeeded.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <span>

#include <png.h>

namespace headrace {

// One image from its header to its rows, as 8-bit RGB. libpng reports errors by a jump: each call sets the place
// to jump to and has no C++ object for the jump to pass over. After a call that returned false only words() may be
// asked for.
class PngHandle {
 public:
  // `encoded` must outlive the handle.
  explicit PngHandle(std::span<const std::byte> encoded) noexcept : encoded_(encoded) {}
  ~PngHandle();
  PngHandle(const PngHandle&) = delete;
  PngHandle& operator=(const PngHandle&) = delete;

  bool read_header() noexcept;
  // Sets the conversion to RGB.
  bool start() noexcept;
  // One row. Where passes() > 1 all rows come once a pass, and `out` still holds what the pass before left there.
  bool read_row(std::uint8_t* out) noexcept;
  // Up to the end of the file: the checksums of all chunks and that of the pixels' zlib stream.
  bool finish() noexcept;

  std::uint32_t height() const noexcept { return height_; }
  std::uint32_t width() const noexcept { return width_; }
  // Once the header is read.
  bool is_interlaced() const noexcept { return png_get_interlace_type(png_, info_) != PNG_INTERLACE_NONE; }
  int passes() const noexcept { return passes_; }
  // Bytes a row takes.
  std::size_t row_bytes() const noexcept { return row_bytes_; }
  // What went wrong, in the library's words.
  const char* words() const noexcept { return words_; }
  // The first thing that is wrong so far but changes no pixel, in the library's words; empty: nothing.
  const char* warning() const noexcept { return warning_; }

 private:
  static void on_error(png_structp png, png_const_charp words);
  static void on_warning(png_structp png, png_const_charp words);
  static void on_read(png_structp png, png_bytep into, std::size_t count);

  std::span<const std::byte> encoded_;  // what is left of it
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

}  // namespace headrace
