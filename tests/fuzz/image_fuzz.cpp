// JPEG and PNG as the decoder uses them: header, whole image, a window of it, EXIF orientation.
#include <cstdlib>
#include <cstring>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/decoders/image_decoder.h"
#include "headrace/tests/fuzz/fuzz_target.h"
#include "headrace/tests/support/image_windows.h"
#include "headrace/tests/support/images.h"
#include "headrace/tests/support/oriented.h"
#include "headrace/tests/support/plain_images.h"

namespace headrace::fuzz {

using namespace test;

namespace {

constexpr std::int64_t kPixels = 1 << 20;  // larger ones take their time, and nothing but that

std::uint32_t crc32(std::span<const std::byte> bytes) {
  std::uint32_t crc = ~0U;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320U : 0);
  }
  return ~crc;
}

// With its index an image gives what it gives without: `expected`, or an error where that is empty.
void check_index(ImageDecoder& decoder, std::span<const std::byte> input, const ImageWindow& window,
                 const std::vector<std::uint8_t>& expected) {
  const auto index = index_of(decoder, input);
  if (index == nullptr) return;
  std::vector<std::uint8_t> part(static_cast<std::size_t>(window.height * window.width * 3));
  try {
    decoder.decode_window(input, *index, window, part);
  } catch (const Error&) {
    part.clear();
  }
  if (part != expected) std::abort();
}

// A JPEG whose entropy-coded data we read ourselves is sound to libjpeg, too, and has the same pixels.
void check_libjpeg(std::span<const std::byte> input, const std::vector<std::uint8_t>& rgb) {
  const auto plain = decode_plainly(input);
  if (plain && (plain->warned || plain->picture.samples != rgb)) std::abort();
}

std::span<std::uint8_t> turned(std::size_t bytes) {
  static std::vector<std::uint8_t> pixels;
  pixels.resize(bytes);
  return pixels;
}

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (const int channels : {1, 3, 4}) {
    const Picture picture = make_picture(17, 23, channels, 1);
    all.push_back(encode_jpeg(picture));
    all.push_back(encode_jpeg(picture, {.progressive = true}));
    all.push_back(encode_png(picture, {.bits = channels == 4 ? 16 : 8, .interlaced = channels == 3}));
  }
  all.push_back(encode_jpeg(make_picture(40, 40, 3, 2), {.horizontal = 1, .vertical = 1, .restart_rows = 1}));
  all.push_back(encode_jpeg(make_picture(40, 56, 3, 2), {.standard_tables = false}));
  all.push_back(jpeg_with_orientation(all.front(), Orientation::kRightTop));
  all.push_back(png_with_orientation(all[2], Orientation::kLeftBottom));
  Picture shown;
  all.push_back(encode_palette_png(make_picture(9, 8, 3, 3), shown));
  return all;
}

void run(std::span<const std::byte> input) {
  static ImageDecoder decoder;  // one for all: nothing of one image may reach into the next
  const ImageSize size = decoder.read_size(input);
  if (size.height * size.width > kPixels) return;
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(size.height * size.width * 3));
  const ImageWindow window{.top = size.height / 3,
                           .left = size.width / 3,
                           .height = (size.height + 2) / 3,
                           .width = (size.width + 2) / 3};
  std::vector<std::uint8_t> part(static_cast<std::size_t>(window.height * window.width * 3));
  bool good = false;
  try {
    decoder.decode_window(input, window, part);
    good = true;
  } catch (const Error&) {
  }
  check_index(decoder, input, window, good ? part : std::vector<std::uint8_t>());
  bool whole_is_good = false;
  try {
    decoder.decode(input, rgb);
    whole_is_good = true;
  } catch (const Error&) {
  }
  if (whole_is_good != good) std::abort();  // which images are bad does not depend on the window
  if (!good) throw Error(ErrorCode::kDataCorrupt, "a bad image");
  if (index_of(decoder, input) != nullptr) check_libjpeg(input, rgb);
  turn_pixels(rgb, size, exif_orientation(input), turned(rgb.size()));
}

// Of a PNG's chunks.
void repair(Bytes& input) {
  if (input.size() < 8 || input[1] != std::byte{'P'}) return;
  for (std::size_t at = 8; at + 12 <= input.size();) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = length << 8 | std::to_integer<std::size_t>(input[at + i]);
    if (length > input.size() - at - 12) return;
    const std::uint32_t crc = crc32(std::span(input).subspan(at + 4, length + 4));
    for (std::size_t i = 0; i < 4; ++i) input[at + 8 + length + i] = static_cast<std::byte>(crc >> (24 - 8 * i));
    at += 12 + length;
  }
}

}  // namespace headrace::fuzz
