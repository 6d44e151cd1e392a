#include "headrace/tests/support/plain_jpeg.h"

#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>

namespace headrace::test {
namespace {

// libjpeg reports errors by a jump: read() has no C++ object for it to pass over.
class PlainReader {
 public:
  PlainReader() noexcept {
    info_.err = jpeg_std_error(&errors_);
    info_.client_data = this;
    errors_.error_exit = [](j_common_ptr info) {
      std::longjmp(static_cast<PlainReader*>(info->client_data)->jump_, 1);
    };
    errors_.emit_message = [](j_common_ptr info, int level) {
      if (level < 0) ++info->err->num_warnings;
    };
    jpeg_create_decompress(&info_);
  }
  ~PlainReader() { jpeg_destroy_decompress(&info_); }
  PlainReader(const PlainReader&) = delete;
  PlainReader& operator=(const PlainReader&) = delete;

  bool read(std::span<const std::byte> jpeg, Picture& to) {
    if (setjmp(jump_) != 0) return false;
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
    jpeg_read_header(&info_, TRUE);
    info_.out_color_space = JCS_RGB;
    jpeg_start_decompress(&info_);
    to.height = static_cast<int>(info_.output_height);
    to.width = static_cast<int>(info_.output_width);
    to.channels = 3;
    to.samples.resize(static_cast<std::size_t>(to.height) * static_cast<std::size_t>(to.width) * 3);
    while (info_.output_scanline < info_.output_height) {
      JSAMPROW row = to.samples.data() + std::size_t{info_.output_scanline} * info_.output_width * 3;
      jpeg_read_scanlines(&info_, &row, 1);
    }
    jpeg_finish_decompress(&info_);
    return true;
  }
  bool warned() const { return errors_.num_warnings > 0; }

 private:
  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  std::jmp_buf jump_;
};

}  // namespace

std::optional<PlainJpeg> decode_plainly(std::span<const std::byte> jpeg) {
  PlainReader reader;
  PlainJpeg read;
  if (!reader.read(jpeg, read.picture)) return std::nullopt;
  read.warned = reader.warned();
  return read;
}

}  // namespace headrace::test
