// What the decoder makes of image files, for the suite in tests/peers to compare: a line of JSON for each file
// named on standard input.
//   {"file": F, "error": words}, or
//   {"file": F, "height": H, "width": W, "pixels": SHA-256 of the RGB bytes as stored, "oriented": the same of the
//    image as its EXIF data want it shown, "orientation": 1 to 8, "warning": words or "", "indexed": whether it
//    has a JPEG index}
// and "windows": whether four windows, with the index and without, are good where the whole is, and equal it.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/pipeline/decoders/exif_orientation.h"
#include "headrace/pipeline/decoders/image_decoder.h"
#include "headrace/tests/peers/pixels_sha256.h"
#include "headrace/tests/support/image_windows.h"

namespace headrace {
namespace {

using Pixels = std::vector<std::uint8_t>;

Pixels pixels_of(const ImageSize& size) { return Pixels(static_cast<std::size_t>(size.height * size.width * 3)); }

// What decode() throws, in words; empty: nothing.
template <typename Decode>
std::string error_of(const Decode& decode) {
  try {
    decode();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

bool windows_agree(ImageDecoder& decoder, std::span<const std::byte> file, const ImageSize& size,
                   const Pixels& whole, const std::string& error) {
  const auto index = test::index_of(decoder, file);
  if (index != nullptr && !error.empty()) return false;
  return std::ranges::all_of(test::windows_of(size), [&](const ImageWindow& window) {
    Pixels part = pixels_of({.height = window.height, .width = window.width});
    if (error_of([&] { decoder.decode_window(file, window, part); }) != error) return false;
    if (!error.empty()) return true;
    const Pixels expected = test::crop_pixels(whole, size, window);
    if (part != expected) return false;
    if (index == nullptr) return true;
    std::ranges::fill(part, std::uint8_t{0x5A});
    return error_of([&] { decoder.decode_window(file, *index, window, part); }).empty() && part == expected;
  });
}

nlohmann::ordered_json line_of(ImageDecoder& decoder, const std::string& name) {
  nlohmann::ordered_json line = {{"file", name}};
  const std::vector<std::byte> file = read_whole_file(name);
  ImageSize size;
  if (const std::string error = error_of([&] { size = decoder.read_size(file); }); !error.empty()) {
    line["error"] = error;
    return line;
  }
  Pixels whole = pixels_of(size);
  const std::string error = error_of([&] { decoder.decode(file, whole); });
  const std::string warning = error.empty() ? decoder.warning() : "";
  line["windows"] = windows_agree(decoder, file, size, whole, error);
  if (!error.empty()) {
    line["error"] = error;
    return line;
  }
  const Orientation orientation = exif_orientation(file);
  Pixels shown = pixels_of(size);
  turn_pixels(whole, size, orientation, shown);
  line["height"] = size.height;
  line["width"] = size.width;
  line["pixels"] = test::pixels_sha256(whole);
  line["oriented"] = test::pixels_sha256(shown);
  line["orientation"] = static_cast<int>(orientation);
  line["warning"] = warning;
  line["indexed"] = test::index_of(decoder, file) != nullptr;
  return line;
}

}  // namespace
}  // namespace headrace

int main() {
  headrace::ImageDecoder decoder;
  for (std::string name; std::getline(std::cin, name);) {
    std::cout << headrace::line_of(decoder, name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
              << '\n';
  }
}
