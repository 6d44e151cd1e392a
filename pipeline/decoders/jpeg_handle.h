// Wraps libjpeg in calls that return whether they succeeded.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>

#include <jpeglib.h>

namespace headrace {

class JpegScan;

// One image from its header to its rows. libjpeg reports errors by longjmp: each call sets the jump target and has
// no C++ object for the jump to skip. After a call that returned false only words() may be called.
class JpegHandle {
 public:
  // REQUIRES: `encoded` outlives the handle.
  explicit JpegHandle(std::span<const std::byte> encoded) noexcept;
  ~JpegHandle();
  JpegHandle(const JpegHandle&) = delete;
  JpegHandle& operator=(const JpegHandle&) = delete;

  bool read_header() noexcept;
  bool start() noexcept;
  // Takes the coefficients from `scan`, opened with the same bytes, instead of reading them; finish() may not be
  // called then. REQUIRES: started, nothing read; `scan` outlives the handle's last call.
  void read_scan_with(JpegScan& scan) noexcept;
  // Restricts decoding to columns [left, left + width); changes both to the wider range really decoded.
  bool crop(JDIMENSION& left, JDIMENSION& width) noexcept;
  bool skip(JDIMENSION rows) noexcept;
  // Reads the next `count` rows, `stride` bytes apart.
  bool read_rows(std::uint8_t* out, std::size_t stride, JDIMENSION count) noexcept;
  // Reads to the end of the image. Returns false if the file ends before. REQUIRES: the last row was read.
  bool finish() noexcept;
  // Returns whether the file was read to the end of the image: start() does that for all with several scans.
  bool at_end() noexcept { return jpeg_input_complete(&info_) != FALSE; }

  std::span<const std::byte> encoded() const noexcept { return encoded_; }
  const jpeg_decompress_struct& info() const noexcept { return info_; }
  // Returns the library's error message.
  const char* words() const noexcept { return words_; }
  // Returns the library's message on the first flaw so far that changes no pixel; empty: none.
  const char* warning() const noexcept { return warning_; }
  bool out_of_memory() const noexcept;
  // Returns the bytes of the coefficients that start() holds at once for several scans. REQUIRES: header read.
  std::size_t coefficient_bytes() noexcept;

 private:
  template <typename Info>
  static JpegHandle& of(Info* info) noexcept {
    return *static_cast<JpegHandle*>(info->client_data);
  }
  [[noreturn]] static void on_error(j_common_ptr info);
  static void on_message(j_common_ptr info, int level);
  static boolean on_empty(j_decompress_ptr info);
  static void on_skip(j_decompress_ptr info, long count);
  static boolean on_mcu(j_decompress_ptr info, JBLOCKROW* blocks);
  static void ignore(j_decompress_ptr /*info*/) {}
  static void ignore_output(j_common_ptr /*info*/) {}

  std::span<const std::byte> encoded_;
  JpegScan* scan_ = nullptr;
  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  jpeg_source_mgr source_{};
  std::jmp_buf jump_;
  char words_[JMSG_LENGTH_MAX] = {};
  char warning_[JMSG_LENGTH_MAX] = {};
};

}  // namespace headrace
