#include "headrace/pipeline/decoders/jpeg_reader.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "headrace/pipeline/decoders/image_size.h"
#include "headrace/pipeline/decoders/jpeg_handle.h"

namespace headrace {
namespace {

// The columns to decode so that those of the window are exact: libjpeg smooths chroma across neighbours, and takes
// the edge of a crop for the image's own.
struct Columns {
  JDIMENSION left = 0;
  JDIMENSION width = 0;
};

void require_jpeg(bool done, const JpegHandle& jpeg) {
  if (done) return;
  throw Error(jpeg.out_of_memory() ? ErrorCode::kOutOfMemory : ErrorCode::kDataCorrupt,
              std::string("bad JPEG: ") + jpeg.words());
}

void start_with(JpegHandle& jpeg, JpegScan* scan) {
  require_jpeg(jpeg.start(), jpeg);
  if (scan != nullptr) jpeg.read_scan_with(*scan);
}

ImageSize size_of(const JpegHandle& jpeg) {
  return {.height = jpeg.info().image_height, .width = jpeg.info().image_width};
}

std::unique_ptr<JpegHandle> open_jpeg(std::span<const std::byte> encoded) {
  auto jpeg = std::make_unique<JpegHandle>(encoded);
  require_jpeg(jpeg->read_header(), *jpeg);
  const ImageSize size = size_of(*jpeg);
  check_pixels(size.height, size.width);
  return jpeg;
}

// libjpeg-turbo writes rows that begin at a multiple of it (16 with SSE2, 32 with AVX2) past the caches: whoever
// reads them next waits for memory.
constexpr std::size_t kStreamed = 16;
bool is_streamed(const std::uint8_t* row) { return reinterpret_cast<std::uintptr_t>(row) % kStreamed == 0; }

bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.data() == b.data() && a.size() == b.size();
}

bool is_cmyk(const JpegHandle& jpeg) { return jpeg.info().out_color_space == JCS_CMYK; }

std::size_t row_bytes(const JpegHandle& jpeg) {
  return std::size_t{jpeg.info().output_width} * static_cast<std::size_t>(jpeg.info().output_components);
}

// Files hold the inverse of the ink, which is light, as Adobe's do: with or without its marker, as in djpeg,
// Pillow and torchvision.
void cmyk_to_rgb(const std::uint8_t* cmyk, std::size_t pixels, std::uint8_t* rgb) {
  for (std::size_t i = 0; i < pixels; ++i, cmyk += 4, rgb += 3) {
    for (int c = 0; c < 3; ++c) rgb[c] = static_cast<std::uint8_t>((unsigned{cmyk[c]} * cmyk[3] + 127) / 255);
  }
}

Columns columns_for(const JpegHandle& jpeg, const ImageWindow& window) {
  const JDIMENSION image = jpeg.info().output_width;
  const auto left = static_cast<JDIMENSION>(window.left), width = static_cast<JDIMENSION>(window.width);
  const auto unit = static_cast<JDIMENSION>(jpeg.info().max_h_samp_factor * DCTSIZE);
  Columns columns{.left = left == 0 ? 0 : (left - 1) / unit * unit};
  // A crop of very few columns is upsampled differently: use at least two units.
  if (image - columns.left < 2 * unit) columns.left -= std::min(columns.left, unit);
  const JDIMENSION right = std::max(left + width + 2, columns.left + 2 * unit);
  columns.width = std::min(right, image) - columns.left;
  return columns;
}

}  // namespace

JpegReader::JpegReader() = default;
JpegReader::~JpegReader() = default;

ImageSize JpegReader::read_size(std::span<const std::byte> encoded) {
  opened_.reset();
  opened_ = open_jpeg(encoded);
  coefficient_bytes_ = opened_->coefficient_bytes();
  return size_of(*opened_);
}

std::unique_ptr<JpegHandle> JpegReader::take(std::span<const std::byte> encoded) {
  std::unique_ptr<JpegHandle> jpeg = std::move(opened_);
  return jpeg != nullptr && same(jpeg->encoded(), encoded) ? std::move(jpeg) : open_jpeg(encoded);
}

void JpegReader::decode(std::span<const std::byte> encoded, std::span<std::uint8_t> rgb) {
  if (scan_.open(encoded, false)) {
    const std::unique_ptr<JpegHandle> jpeg = take(encoded);
    read_whole(*jpeg, rgb, &scan_);
    warning_ = jpeg->warning();
    if (scan_.finish()) return;
  }
  const std::unique_ptr<JpegHandle> jpeg = take(encoded);
  read_whole(*jpeg, rgb, nullptr);
  require_jpeg(jpeg->finish(), *jpeg);
  warning_ = jpeg->warning();
}

void JpegReader::decode_window(std::span<const std::byte> encoded, const ImageWindow& window,
                               std::span<std::uint8_t> rgb, std::unique_ptr<const JpegIndex>* index) {
  if (scan_.open(encoded, index != nullptr)) {
    const std::unique_ptr<JpegHandle> jpeg = take(encoded);
    read_window(*jpeg, window, rgb, &scan_);
    warning_ = jpeg->warning();
    if (scan_.finish()) {
      if (index != nullptr && warning_.empty()) *index = scan_.take_index();
      return;
    }
  }
  const std::unique_ptr<JpegHandle> jpeg = take(encoded);
  read_window(*jpeg, window, rgb, nullptr);
  read_rest(*jpeg);
  warning_ = jpeg->warning();
}

void JpegReader::decode_good_window(std::span<const std::byte> encoded, const ImageWindow& window,
                                    std::span<std::uint8_t> rgb) {
  const bool scans = scan_.open(encoded, false);
  std::unique_ptr<JpegHandle> jpeg = take(encoded);
  read_window(*jpeg, window, rgb, scans ? &scan_ : nullptr);
  if (scans && scan_.is_flawed()) {
    jpeg = take(encoded);
    read_window(*jpeg, window, rgb, nullptr);
  }
  warning_ = jpeg->warning();
}

void JpegReader::decode_window(std::span<const std::byte> encoded, const JpegIndex& index,
                               const ImageWindow& window, std::span<std::uint8_t> rgb) {
  if (!scan_.open(encoded, index)) return decode_good_window(encoded, window, rgb);
  const std::unique_ptr<JpegHandle> jpeg = take(encoded);
  read_window(*jpeg, window, rgb, &scan_);
  warning_ = jpeg->warning();
  if (scan_.is_flawed()) decode_good_window(encoded, window, rgb);
}

std::unique_ptr<const JpegIndex> JpegReader::make_index(std::span<const std::byte> encoded) {
  if (!scan_.open(encoded, true)) return nullptr;
  warning_ = take(encoded)->warning();  // libjpeg warns of nothing else in a file whose data are sound
  return warning_.empty() && scan_.finish() ? scan_.take_index() : nullptr;
}

std::uint8_t* JpegReader::line(const JpegHandle& jpeg) {
  line_.resize(std::max(line_.size(), row_bytes(jpeg) + kStreamed));
  const std::size_t past = reinterpret_cast<std::uintptr_t>(line_.data()) % kStreamed;
  return line_.data() + (kStreamed / 2 + kStreamed - past) % kStreamed;
}

void JpegReader::read_whole(JpegHandle& jpeg, std::span<std::uint8_t> rgb, JpegScan* scan) {
  const ImageSize size = size_of(jpeg);
  check_window(size, {.height = size.height, .width = size.width}, rgb.size());
  start_with(jpeg, scan);
  const std::size_t width = jpeg.info().output_width;
  if (is_cmyk(jpeg)) {
    std::uint8_t* const inks = line(jpeg);
    for (std::uint8_t* out = rgb.data(); out < rgb.data() + rgb.size(); out += width * 3) {
      require_jpeg(jpeg.read_rows(inks, 0, 1), jpeg);
      cmyk_to_rgb(inks, width, out);
    }
  } else if (is_streamed(rgb.data()) && is_streamed(rgb.data() + width * 3)) {  // all rows, then
    std::uint8_t* const row = line(jpeg);
    for (std::uint8_t* out = rgb.data(); out < rgb.data() + rgb.size(); out += width * 3) {
      require_jpeg(jpeg.read_rows(row, 0, 1), jpeg);
      std::memcpy(out, row, width * 3);
    }
  } else {
    require_jpeg(jpeg.read_rows(rgb.data(), width * 3, jpeg.info().output_height), jpeg);
  }
}

// Notes flaws below the window: its bits are read, but give no pixels.
void JpegReader::read_rest(JpegHandle& jpeg) {
  if (jpeg.at_end()) return;
  const JDIMENSION rows = jpeg.info().output_height - jpeg.info().output_scanline;
  if (rows > 0) {  // libjpeg does not look at what is skipped up to the last row, so that one is read
    require_jpeg(jpeg.skip(rows - 1), jpeg);
    require_jpeg(jpeg.read_rows(line_.data(), 0, 1), jpeg);
  }
  require_jpeg(jpeg.finish(), jpeg);
}

void JpegReader::read_window(JpegHandle& jpeg, const ImageWindow& window, std::span<std::uint8_t> rgb,
                             JpegScan* scan) {
  check_window(size_of(jpeg), window, rgb.size());
  start_with(jpeg, scan);
  Columns columns = columns_for(jpeg, window);
  if (columns.width < jpeg.info().output_width) require_jpeg(jpeg.crop(columns.left, columns.width), jpeg);
  if (scan != nullptr) scan->limit_columns(columns.left, columns.width);
  require_jpeg(jpeg.skip(static_cast<JDIMENSION>(window.top)), jpeg);
  std::uint8_t* const row = line(jpeg);
  const auto components = static_cast<std::size_t>(jpeg.info().output_components);
  const std::uint8_t* wanted = row + (static_cast<std::size_t>(window.left) - columns.left) * components;
  const auto pixels = static_cast<std::size_t>(window.width);
  for (std::uint8_t* out = rgb.data(); out < rgb.data() + rgb.size(); out += pixels * 3) {
    require_jpeg(jpeg.read_rows(row, 0, 1), jpeg);
    if (is_cmyk(jpeg)) {
      cmyk_to_rgb(wanted, pixels, out);
    } else {
      std::memcpy(out, wanted, pixels * 3);
    }
  }
}

#define HEADRACE_TEXT_OF(value) #value
#define HEADRACE_VALUE_TEXT(value) HEADRACE_TEXT_OF(value)

std::string JpegReader::identity() {
  return "libjpeg-turbo " HEADRACE_VALUE_TEXT(LIBJPEG_TURBO_VERSION) " islow fancy, ink inverted";
}

#undef HEADRACE_VALUE_TEXT
#undef HEADRACE_TEXT_OF

}  // namespace headrace
