#include "headrace/tools/pipelines/bare_jpeg.h"

#include <csetjmp>
#include <cstdio>
//
#include <jpeglib.h>

#include "headrace/devices/base/error.h"

namespace headrace::tools {

struct BareJpeg::Handle {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  std::jmp_buf on_error{};
};

namespace {

[[noreturn]] void jump_out(j_common_ptr jpeg) { std::longjmp(*static_cast<std::jmp_buf*>(jpeg->client_data), 1); }

void stay_quiet(j_common_ptr) {}

// False when the library gave up. Nothing here has a destructor: longjmp leaves through it.
bool read_header(jpeg_decompress_struct& jpeg, std::jmp_buf& on_error, std::span<const std::byte> encoded) {
  if (setjmp(on_error) != 0) return false;
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(encoded.data()), encoded.size());
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = JCS_RGB;
  jpeg.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&jpeg);
  return true;
}

bool read_rows(jpeg_decompress_struct& jpeg, std::jmp_buf& on_error, std::uint8_t* pixels) {
  if (setjmp(on_error) != 0) return false;
  const std::size_t stride = std::size_t{jpeg.output_width} * 3;
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = pixels + jpeg.output_scanline * stride;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  return true;
}

}  // namespace

BareJpeg::BareJpeg() : handle_(new Handle) {
  handle_->jpeg.err = jpeg_std_error(&handle_->errors);
  handle_->errors.error_exit = jump_out;
  handle_->errors.output_message = stay_quiet;
  handle_->jpeg.client_data = &handle_->on_error;
  jpeg_create_decompress(&handle_->jpeg);
}

BareJpeg::~BareJpeg() {
  jpeg_destroy_decompress(&handle_->jpeg);
  delete handle_;
}

std::span<const std::uint8_t> BareJpeg::decode(std::span<const std::byte> encoded) {
  auto& jpeg = handle_->jpeg;
  bool good = read_header(jpeg, handle_->on_error, encoded);
  if (good) {
    pixels_.resize(std::size_t{jpeg.output_width} * jpeg.output_height * 3);
    good = read_rows(jpeg, handle_->on_error, pixels_.data());
  }
  if (!good) {
    jpeg_abort_decompress(&jpeg);
    throw Error(ErrorCode::kDataCorrupt, "the baseline could not decode a JPEG", "it needs intact JPEG files");
  }
  return pixels_;
}

}  // namespace headrace::tools
