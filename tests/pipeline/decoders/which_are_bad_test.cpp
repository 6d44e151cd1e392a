// pipeline/decoders/README.md, "Which records are bad": one answer, however much of an image is wanted and
// whatever is known of it already.
#include "headrace/tests/support/image_windows.h"
#include "headrace/tests/support/plain_images.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

constexpr int kImageHeight = 61, kImageWidth = 77;

struct PrefixVerdict {
  std::string error;    // empty: good
  std::string warning;  // of a good one
  PixelBytes pixels;
};

template <typename Decode>
PrefixVerdict judge(ImageDecoder& decoder, std::size_t pixels, const Decode& decode) {
  PrefixVerdict verdict{.error = {}, .warning = {}, .pixels = PixelBytes(pixels * 3, 0x5A)};
  try {
    decode(verdict.pixels);
    verdict.warning = decoder.warning();
  } catch (const Error& error) {
    verdict = {.error = error.what(), .warning = {}, .pixels = {}};
  }
  return verdict;
}

ImageSize size_of(ImageDecoder& decoder, const Bytes& encoded) {
  try {
    const ImageSize size = decoder.read_size(encoded);
    return size.height * size.width <= 1 << 20 ? size : ImageSize{};
  } catch (const Error&) {
    return {};
  }
}

PrefixVerdict judge_whole(ImageDecoder& decoder, const Bytes& encoded) {
  const ImageSize size = size_of(decoder, encoded);
  return judge(decoder, static_cast<std::size_t>(size.height * size.width),
               [&](PixelBytes& pixels) { decoder.decode(encoded, pixels); });
}

PrefixVerdict judge_window(ImageDecoder& decoder, const Bytes& encoded, const ImageWindow& window) {
  return judge(decoder, static_cast<std::size_t>(window.height * window.width),
               [&](PixelBytes& pixels) { decoder.decode_window(encoded, window, pixels); });
}

PrefixVerdict judge_indexed(ImageDecoder& decoder, const Bytes& encoded, const JpegIndex& index,
                            const ImageWindow& window) {
  return judge(decoder, static_cast<std::size_t>(window.height * window.width),
               [&](PixelBytes& pixels) { decoder.decode_window(encoded, index, window, pixels); });
}

std::map<std::string, Bytes> images() {
  const Picture color = make_picture(kImageHeight, kImageWidth, 3, 8),
                gray = make_picture(kImageHeight, kImageWidth, 1, 9);
  Picture shown;
  return {{"4:2:0", encode_jpeg(color, {.quality = 70})},
          {"4:4:4", encode_jpeg(color, {.quality = 70, .horizontal = 1, .vertical = 1})},
          {"restarts", encode_jpeg(color, {.quality = 70, .restart_rows = 1})},
          {"own tables", encode_jpeg(color, {.quality = 70, .standard_tables = false})},
          {"progressive", encode_jpeg(color, {.quality = 70, .progressive = true})},
          {"grey", encode_jpeg(gray, {.quality = 70})},
          {"ink", encode_jpeg(make_picture(kImageHeight, kImageWidth, 4, 3), {.quality = 70})},
          {"png", encode_png(color)},
          {"interlaced png", encode_png(color, {.interlaced = true})},
          {"palette png", encode_palette_png(color, shown)}};
}

class WhichAreBad : public testing::Test {
 protected:
  // True where the file is bad; it is so for all windows, with its index and without, in the same words.
  bool is_bad(const Bytes& encoded) {
    const PrefixVerdict whole = judge_whole(decoder_, encoded);
    const ImageSize size = size_of(decoder_, encoded);
    if (size == ImageSize{}) {
      EXPECT_FALSE(whole.error.empty());
      return true;
    }
    const auto index = index_of(decoder_, encoded);
    if (index != nullptr) {
      EXPECT_EQ(whole.error, "");
      EXPECT_EQ(whole.warning, "");
      expect_libjpeg_agrees(encoded, whole.pixels);
      ++indexes_;
    }
    for (const ImageWindow& window : windows_of(size)) {
      const PrefixVerdict part = judge_window(decoder_, encoded, window);
      EXPECT_EQ(part.error, whole.error);
      EXPECT_EQ(part.warning, whole.warning);
      if (!whole.error.empty()) continue;
      const PixelBytes expected = crop_pixels(whole.pixels, size, window);
      EXPECT_EQ(part.pixels, expected);
      if (index == nullptr) continue;
      const PrefixVerdict indexed = judge_indexed(decoder_, encoded, *index, window);
      EXPECT_EQ(indexed.error, "");
      EXPECT_EQ(indexed.pixels, expected);
    }
    return !whole.error.empty();
  }

  // Of an image whose entropy-coded data we read ourselves.
  static void expect_libjpeg_agrees(const Bytes& encoded, const PixelBytes& pixels) {
    const auto plain = decode_plainly(encoded);
    if (!plain) return;  // inks
    EXPECT_FALSE(plain->warned);
    EXPECT_EQ(plain->picture.samples, pixels);
  }

  ImageDecoder decoder_;
  int indexes_ = 0;
};

TEST_F(WhichAreBad, IsOneAnswerForEveryWindowOfSixThousandFiles) {
  std::size_t files = 0;
  for (const auto& [name, image] : images()) {
    SCOPED_TRACE(name);
    ASSERT_FALSE(is_bad(image));
    std::size_t bad = 0;
    const std::vector<Bytes> damaged = damaged_files(image, 400, 11);
    for (std::size_t i = 0; i < damaged.size(); ++i) {
      SCOPED_TRACE(i);
      const bool is = is_bad(damaged[i]);
      bad += is ? 1 : 0;
      if (i < 100) {
        ASSERT_TRUE(is) << "cut to " << i << " %";
      }
      if (HasFailure()) return;
    }
    files += damaged.size();
    EXPECT_GT(bad, 150U);
  }
  EXPECT_GT(files, 6000U);
  EXPECT_GT(indexes_, 500);
}

TEST_F(WhichAreBad, EveryFlippedBitOfAPngBehindItsSignatureIsFound) {
  for (const auto& [name, image] : images()) {
    if (name.find("png") == std::string::npos) continue;
    const PrefixVerdict good = judge_whole(decoder_, image);
    for (std::size_t bit = 0; bit < image.size() * 8; bit += 13) {
      const Bytes damaged = with_flipped_bit(image, bit);
      ASSERT_TRUE(is_bad(damaged)) << name << ", bit " << bit;
    }
  }
}

// Of a JPEG: the bytes of its header up to the first segment with that marker.
std::size_t place_of(const Bytes& jpeg, unsigned marker) {
  for (std::size_t at = 2; at + 4 < jpeg.size();) {
    if (jpeg[at + 1] == static_cast<std::byte>(marker)) return at;
    at += 2 + (std::to_integer<std::size_t>(jpeg[at + 2]) << 8 | std::to_integer<std::size_t>(jpeg[at + 3]));
  }
  throw std::runtime_error("no such segment");
}

class Harmless : public WhichAreBad {
 protected:
  // It is used, with the pixels of `image`, and there is something to say of it.
  void expect_warning(const Bytes& damaged, const Bytes& image, const std::string& words) {
    EXPECT_FALSE(is_bad(damaged));
    const PrefixVerdict verdict = judge_whole(decoder_, damaged);
    EXPECT_EQ(verdict.error, "");
    EXPECT_THAT(verdict.warning, HasSubstr(words));
    EXPECT_EQ(verdict.pixels, judge_whole(decoder_, image).pixels);
    EXPECT_THAT(judge_whole(decoder_, image).warning, IsEmpty()) << "of the file before";
  }
  const Bytes jpeg_ = images().at("4:2:0");
};

TEST_F(Harmless, JunkBetweenTheSegmentsOfAHeader) {
  const Bytes junk = to_bytes("no segment at all, nor a part of one");
  for (const unsigned before : {0xDBU, 0xC0U, 0xC4U, 0xDAU}) {
    expect_warning(with_inserted(jpeg_, place_of(jpeg_, before), junk), jpeg_, "36 extraneous bytes");
  }
}

TEST_F(Harmless, AnExifBlockThatIsShorterThanItsBytes) {
  Bytes exif =
      to_bytes(std::string_view("\xFF\xE1\x00\x0A"
                                "Exif\0\0MM and more than its length says",
                                42));
  expect_warning(with_inserted(jpeg_, 2, exif), jpeg_, "extraneous bytes");
}

TEST_F(Harmless, ZerosBeforeTheEndMark) {
  const Bytes progressive = images().at("progressive");
  for (const std::size_t count : {1U, 2U, 3U, 50U}) {
    SCOPED_TRACE(count);
    const Bytes zeros(count, std::byte{0});
    EXPECT_FALSE(is_bad(with_inserted(jpeg_, jpeg_.size() - 2, zeros)));
    EXPECT_FALSE(is_bad(with_inserted(progressive, progressive.size() - 2, zeros)));
  }
  expect_warning(with_inserted(jpeg_, jpeg_.size() - 2, Bytes(50, std::byte{0})), jpeg_, "extraneous bytes");
}

TEST_F(Harmless, ScanParametersThatASequentialDecoderDoesNotUse) {
  Bytes other = jpeg_;
  other[place_of(jpeg_, 0xDA) + 11] = std::byte{7};  // the first coefficient
  expect_warning(other, jpeg_, "Invalid SOS parameters");
}

TEST_F(Harmless, FillBytesAreNotWorthAWord) {
  const Bytes ones(7, std::byte{0xFF});
  for (const std::size_t at : {place_of(jpeg_, 0xDB), place_of(jpeg_, 0xDA), jpeg_.size() - 2}) {
    const Bytes filled = with_inserted(jpeg_, at, ones);
    EXPECT_FALSE(is_bad(filled));
    EXPECT_EQ(judge_whole(decoder_, filled).warning, "");
  }
}

TEST_F(Harmless, DataBehindThePixelsOfAPng) {
  const Bytes png = images().at("png");
  // An IDAT chunk of four bytes before IEND, as some encoders pad; its checksum is right.
  const Bytes chunk = to_bytes(std::string_view("\0\0\0\4IDAT\0\0\0\0\xEA\x23\xE7\x07", 16));
  const Bytes padded = with_inserted(png, png.size() - 12, chunk);
  EXPECT_FALSE(is_bad(padded)) << judge_whole(decoder_, padded).error;
  EXPECT_EQ(judge_whole(decoder_, padded).pixels, judge_whole(decoder_, png).pixels);
}

using NotHarmless = Harmless;

TEST_F(NotHarmless, BytesBehindTheEntropyCodedDataThatAreNotZero) {
  for (const char* kind : {"4:2:0", "progressive", "restarts"}) {
    const Bytes image = images().at(kind);
    EXPECT_TRUE(is_bad(with_inserted(image, image.size() - 2, Bytes(50, std::byte{0x35})))) << kind;
  }
}

// The segment is passed over as junk, and what it says is lost.
TEST_F(NotHarmless, ASegmentThatPixelsDependOnWithoutItsMarker) {
  const Bytes ink = images().at("ink");
  for (int bit = 0; bit < 8; ++bit) {
    EXPECT_TRUE(is_bad(with_flipped_bit(jpeg_, place_of(jpeg_, 0xDB) * 8 + static_cast<std::size_t>(bit))));
    EXPECT_TRUE(is_bad(with_flipped_bit(jpeg_, place_of(jpeg_, 0xC4) * 8 + static_cast<std::size_t>(bit))));
    EXPECT_TRUE(is_bad(with_flipped_bit(ink, place_of(ink, 0xEE) * 8 + static_cast<std::size_t>(bit))))
        << "Adobe's";
  }
}

TEST_F(NotHarmless, AMissingEndMark) {
  for (const auto& [name, image] : images()) {
    for (std::size_t missing = 1; missing <= 2; ++missing) {
      EXPECT_TRUE(is_bad(Bytes(image.begin(), image.end() - static_cast<std::ptrdiff_t>(missing)))) << name;
    }
  }
}

TEST_F(NotHarmless, AWrongZlibChecksumBelowTheWindow) {
  // The last IDAT's data end in the zlib stream's checksum, and the chunk's own checksum is made right again.
  Bytes png = images().at("png");
  const std::size_t end = png.size() - 12;  // IEND
  std::size_t begin = 8;
  while (true) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = length << 8 | std::to_integer<std::size_t>(png[begin + i]);
    if (begin + 12 + length == end) break;
    begin += 12 + length;
  }
  png[end - 5] ^= std::byte{1};
  std::uint32_t crc = ~0U;
  for (std::size_t i = begin + 4; i < end - 4; ++i) {
    crc ^= std::to_integer<std::uint32_t>(png[i]);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1U ? 0xEDB88320U : 0U);
  }
  for (std::size_t i = 0; i < 4; ++i) png[end - 4 + i] = static_cast<std::byte>(~crc >> (24 - 8 * i));
  EXPECT_TRUE(is_bad(png));
  EXPECT_THAT(judge_whole(decoder_, png).error, HasSubstr("incorrect data check"));
}

// Their samples are light, with the marker or without, as djpeg, Pillow and torchvision have it.
TEST_F(WhichAreBad, InkWithoutAdobesMarkerIsReadAsWithIt) {
  const Bytes ink = images().at("ink");
  const std::size_t adobe = place_of(ink, 0xEE);
  Bytes plain = ink;
  plain.erase(plain.begin() + static_cast<std::ptrdiff_t>(adobe),
              plain.begin() + static_cast<std::ptrdiff_t>(adobe + 16));
  EXPECT_FALSE(is_bad(plain));
  EXPECT_EQ(judge_whole(decoder_, plain).pixels, judge_whole(decoder_, ink).pixels);
}

}  // namespace
}  // namespace headrace::test
