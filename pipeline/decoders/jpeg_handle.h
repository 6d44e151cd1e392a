// libjpeg behind calls that return whether they succeeded.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>

#include <jpeglib.h>

namespace headrace {

// One image from its header to its rows. libjpeg reports errors by a jump: each call sets the place to jump to
// and has no C++ object for the jump to pass over. After a call that returned false only words() may be asked for.
class JpegHandle {
 public:
  // `encoded` must outlive the handle.
  explicit JpegHandle(std::span<const std::byte> encoded) noexcept;
  ~JpegHandle();
  JpegHandle(const JpegHandle&) = delete;
  JpegHandle& operator=(const JpegHandle&) = delete;

  bool read_header() noexcept;
  bool start() noexcept;
  // Columns [left, left + width) only; both are changed to what is decoded in fact, which is more.
  bool crop(JDIMENSION& left, JDIMENSION& width) noexcept;
  bool skip(JDIMENSION rows) noexcept;
  // The next `count` rows, `stride` bytes apart.
  bool read_rows(std::uint8_t* out, std::size_t stride, JDIMENSION count) noexcept;
  // Up to the end of the image, whose last row must have been read: false where the file ends before.
  bool finish() noexcept;
  // The file has been read up to the end of the image: start() does that with all that have several scans.
  bool at_end() noexcept { return jpeg_input_complete(&info_) != FALSE; }

  std::span<const std::byte> encoded() const noexcept { return encoded_; }
  const jpeg_decompress_struct& info() const noexcept { return info_; }
  // What went wrong, in the library's words.
  const char* words() const noexcept { return words_; }
  // The first thing that is wrong so far but changes no pixel, in the library's words; empty: nothing.
  const char* warning() const noexcept { return warning_; }
  bool out_of_memory() const noexcept;
  // Of the coefficients that start() holds all at once, those of several scans; known once the header is read.
  std::size_t coefficient_bytes() noexcept;

 private:
  static JpegHandle& of(j_common_ptr info) noexcept { return *static_cast<JpegHandle*>(info->client_data); }
  [[noreturn]] static void on_error(j_common_ptr info);
  static void on_message(j_common_ptr info, int level);
  static boolean on_empty(j_decompress_ptr info);
  static void on_skip(j_decompress_ptr info, long count);
  static void ignore(j_decompress_ptr /*info*/) {}
  static void ignore_output(j_common_ptr /*info*/) {}

  std::span<const std::byte> encoded_;
  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  jpeg_source_mgr source_{};
  std::jmp_buf jump_;
  char words_[JMSG_LENGTH_MAX] = {};
  char warning_[JMSG_LENGTH_MAX] = {};
};

}  // namespace headrace
