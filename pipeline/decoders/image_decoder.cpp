#include "headrace/pipeline/decoders/image_decoder.h"

#include <algorithm>
#include <array>
#include <string>
#include <type_traits>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/decoders/image_size.h"
#include "headrace/pipeline/decoders/jpeg_reader.h"
#include "headrace/pipeline/decoders/png_reader.h"

namespace headrace {
namespace {

// More than any image has, even a single-coloured one: nothing is allocated for a false header.
constexpr std::uint64_t kMaxPixelsPerByte = 65536;
constexpr std::array<int, 3> kJpegStart = {0xFF, 0xD8, 0xFF};
constexpr std::array<int, 8> kPngStart = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

template <std::size_t kSize>
bool starts_with_bytes(std::span<const std::byte> bytes, const std::array<int, kSize>& start) {
  return bytes.size() >= kSize &&
         std::equal(start.begin(), start.end(), bytes.begin(),
                    [](int want, std::byte is) { return std::to_integer<int>(is) == want; });
}

[[noreturn]] void throw_unknown_format(std::span<const std::byte> encoded) {
  if (encoded.empty()) throw Error(ErrorCode::kDataCorrupt, "the image file is empty");
  throw Error(ErrorCode::kDataCorrupt, "neither JPEG nor PNG by its first bytes",
              "other formats are not understood");
}

}  // namespace

struct ImageDecoder::State {
  JpegReader jpeg;
  PngReader png;
  std::string warning;
  bool is_png = false;  // the image whose size was read last

  // Passes the reader for these bytes to `use`.
  template <typename Use>
  auto with_reader(std::span<const std::byte> encoded, const Use& use) {
    if (starts_with_bytes(encoded, kJpegStart)) return use(jpeg);
    if (starts_with_bytes(encoded, kPngStart)) return use(png);
    throw_unknown_format(encoded);
  }
};

ImageDecoder::ImageDecoder() : state_(std::make_unique<State>()) {}
ImageDecoder::~ImageDecoder() = default;
ImageDecoder::ImageDecoder(ImageDecoder&&) noexcept = default;
ImageDecoder& ImageDecoder::operator=(ImageDecoder&&) noexcept = default;

ImageSize ImageDecoder::read_size(std::span<const std::byte> encoded) {
  const ImageSize size = state_->with_reader(encoded, [&](auto& reader) { return reader.read_size(encoded); });
  state_->is_png = starts_with_bytes(encoded, kPngStart);
  if (static_cast<std::uint64_t>(size.height * size.width) <= kMaxPixelsPerByte * encoded.size()) return size;
  throw Error(ErrorCode::kDataCorrupt, "claims " + std::to_string(size.height) + " x " +
                                           std::to_string(size.width) + " pixels in " +
                                           std::to_string(encoded.size()) + " bytes");
}

std::size_t ImageDecoder::decode_bytes() const noexcept {
  return state_->is_png ? 0 : state_->jpeg.coefficient_bytes();
}

std::size_t ImageDecoder::window_bytes() const noexcept {
  return state_->is_png ? state_->png.window_bytes() : state_->jpeg.coefficient_bytes();
}

void ImageDecoder::decode(std::span<const std::byte> encoded, std::span<std::uint8_t> rgb) {
  state_->with_reader(encoded, [&](auto& reader) {
    reader.decode(encoded, rgb);
    state_->warning = reader.warning();
  });
}

void ImageDecoder::decode_numbers(std::span<const std::byte> encoded, std::span<std::uint8_t> numbers) {
  if (!starts_with_bytes(encoded, kPngStart)) {
    throw Error(ErrorCode::kDataCorrupt, "a mask is a PNG: a JPEG does not keep numbers",
                "save masks as PNG; where an image is meant, leave out :mask");
  }
  state_->png.decode_numbers(encoded, numbers);
  state_->warning = state_->png.warning();
}

void ImageDecoder::decode_window(std::span<const std::byte> encoded, const ImageWindow& window,
                                 std::span<std::uint8_t> rgb, std::unique_ptr<const JpegIndex>* index) {
  if (index != nullptr) index->reset();
  state_->with_reader(encoded, [&](auto& reader) {
    if constexpr (std::is_same_v<decltype(reader), JpegReader&>) {
      reader.decode_window(encoded, window, rgb, index);
    } else {
      reader.decode_window(encoded, window, rgb);
    }
    state_->warning = reader.warning();
  });
}

void ImageDecoder::decode_good_window(std::span<const std::byte> encoded, const ImageWindow& window,
                                      std::span<std::uint8_t> rgb) {
  if (!starts_with_bytes(encoded, kJpegStart)) return decode_window(encoded, window, rgb);
  state_->jpeg.decode_good_window(encoded, window, rgb);
  state_->warning = state_->jpeg.warning();
}

std::unique_ptr<const JpegIndex> ImageDecoder::make_index(std::span<const std::byte> encoded) {
  return starts_with_bytes(encoded, kJpegStart) ? state_->jpeg.make_index(encoded) : nullptr;
}

const std::string& ImageDecoder::warning() const noexcept { return state_->warning; }

void ImageDecoder::decode_window(std::span<const std::byte> encoded, const JpegIndex& index,
                                 const ImageWindow& window, std::span<std::uint8_t> rgb) {
  state_->jpeg.decode_window(encoded, index, window, rgb);
  state_->warning = state_->jpeg.warning();
}

std::string ImageDecoder::identity() { return JpegReader::identity() + "; " + PngReader::identity(); }

}  // namespace headrace
