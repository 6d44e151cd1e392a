// Images whose EXIF data say which way up they are.
#pragma once

#include "headrace/pipeline/decoders/exif_orientation.h"
#include "headrace/pipeline/decoders/image_decoder.h"
#include "headrace/tests/support/images.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {

// A TIFF file of one directory with two entries: the image's width, and the orientation as a number of 16 bits.
inline std::string exif_of(Orientation orientation, bool little_endian) {
  std::string text = little_endian ? "II" : "MM";
  const auto put = [&](std::uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * (little_endian ? i : bytes - 1 - i));
  };
  put(42, 2);
  put(8, 4);
  put(2, 2);
  for (const auto& [tag, value] : {std::pair{0x0100U, 9U}, {0x0112U, static_cast<std::uint32_t>(orientation)}}) {
    put(tag, 2);
    put(3, 2);
    put(1, 4);
    put(value, 2);
    put(0, 2);
  }
  put(0, 4);
  return text;
}

inline Bytes with_text(const Bytes& file, std::size_t at, const std::string& text) {
  Bytes longer = file;
  const Bytes more = to_bytes(text);
  longer.insert(longer.begin() + static_cast<std::ptrdiff_t>(at), more.begin(), more.end());
  return longer;
}

inline Bytes jpeg_with_orientation(const Bytes& jpeg, Orientation orientation, bool little_endian = true) {
  const std::string data = std::string("Exif\0\0", 6) + exif_of(orientation, little_endian);
  std::string segment = "\xFF\xE1";
  segment += static_cast<char>((data.size() + 2) >> 8);
  segment += static_cast<char>(data.size() + 2);
  return with_text(jpeg, 2, segment + data);
}

// With a checksum of the chunk.
inline Bytes png_with_orientation(const Bytes& png, Orientation orientation, bool little_endian = true) {
  const std::string body = "eXIf" + exif_of(orientation, little_endian);
  std::uint32_t crc = ~0U;
  for (const char letter : body) {
    crc ^= static_cast<std::uint8_t>(letter);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1U ? 0xEDB88320U : 0U);
  }
  std::string chunk;
  const auto put = [&](std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) chunk += static_cast<char>(value >> shift);
  };
  put(static_cast<std::uint32_t>(body.size() - 4));
  chunk += body;
  put(~crc);
  return with_text(png, 33, chunk);  // behind the header chunk
}

// What a viewer makes of it, as a PNG.
inline Bytes turned_png(const Bytes& encoded, Orientation orientation) {
  ImageDecoder decoder;
  const ImageSize size = decoder.read_size(encoded), shown = shown_size(size, orientation);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(size.height * size.width * 3)), turned(pixels.size());
  decoder.decode(encoded, pixels);
  turn_pixels(pixels, size, orientation, turned);
  return encode_png({.height = static_cast<int>(shown.height),
                     .width = static_cast<int>(shown.width),
                     .channels = 3,
                     .samples = turned});
}

}  // namespace headrace::test
