#include "headrace/pipeline/decoders/image_decoder.h"
#include "headrace/tests/support/images.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

PixelBytes decode(ImageDecoder& decoder, const Bytes& encoded) {
  const ImageSize size = decoder.read_size(encoded);
  PixelBytes pixels(static_cast<std::size_t>(size.height * size.width) * 3);
  decoder.decode(encoded, pixels);
  return pixels;
}

// RGB as the decoder should show a picture of 1 to 4 channels (2 and 4: the last is alpha).
PixelBytes rgb_of(const Picture& picture) {
  PixelBytes rgb;
  const auto channels = static_cast<std::size_t>(picture.channels);
  for (std::size_t i = 0; i < picture.samples.size(); i += channels) {
    for (std::size_t c = 0; c < 3; ++c) rgb.push_back(picture.samples[channels < 3 ? i : i + c]);
  }
  return rgb;
}

double mean_difference(const PixelBytes& a, const PixelBytes& b) {
  EXPECT_EQ(a.size(), b.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(int{a[i]} - int{b[i]});
  return sum / static_cast<double>(a.size());
}

std::string error_of_decoding(ImageDecoder& decoder, const Bytes& encoded) {
  try {
    decode(decoder, encoded);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDataCorrupt);
    return error.message();
  }
  return "no error";
}

TEST(ImageDecoderTest, ReadsTheSize) {
  ImageDecoder decoder;
  EXPECT_EQ(decoder.read_size(encode_jpeg(make_picture(31, 47, 3, 1))), (ImageSize{.height = 31, .width = 47}));
  EXPECT_EQ(decoder.read_size(encode_png(make_picture(5, 600, 1, 1))), (ImageSize{.height = 5, .width = 600}));
}

TEST(ImageDecoderTest, ShowsWhatAJpegWasMadeFrom) {
  ImageDecoder decoder;
  for (const bool progressive : {false, true}) {
    for (const int channels : {1, 3}) {
      const Picture picture = make_picture(50, 70, channels, 3);
      const Bytes encoded =
          encode_jpeg(picture, {.quality = 98, .horizontal = 1, .vertical = 1, .progressive = progressive});
      EXPECT_LT(mean_difference(decode(decoder, encoded), rgb_of(picture)), 2.0) << channels << progressive;
    }
  }
}

TEST(ImageDecoderTest, ConvertsAdobesCmyk) {
  ImageDecoder decoder;
  Picture picture = make_picture(24, 24, 4, 3);
  // Adobe's samples are inverted: 255 is no ink. Flat areas of known ink survive the DCT.
  for (std::size_t i = 0; i < picture.samples.size(); i += 4) {
    const std::uint8_t flat[] = {200, 100, 50, 128};
    std::copy_n(flat, 4, picture.samples.begin() + static_cast<std::ptrdiff_t>(i));
  }
  const PixelBytes pixels = decode(decoder, encode_jpeg(picture, {.quality = 100}));
  EXPECT_NEAR(pixels[0], 200 * 128 / 255, 2);
  EXPECT_NEAR(pixels[1], 100 * 128 / 255, 2);
  EXPECT_NEAR(pixels[2], 50 * 128 / 255, 2);
}

TEST(ImageDecoderTest, DecodesPngExactly) {
  ImageDecoder decoder;
  for (const int channels : {1, 2, 3, 4}) {
    for (const int bits : {8, 16}) {
      for (const bool interlaced : {false, true}) {
        const Picture picture = make_picture(19, 23, channels, 4);
        EXPECT_EQ(decode(decoder, encode_png(picture, {.bits = bits, .interlaced = interlaced})), rgb_of(picture))
            << channels << " channels, " << bits << " bits, interlaced " << interlaced;
      }
    }
  }
  Picture shown;
  const Bytes palette = encode_palette_png(make_picture(19, 23, 3, 5), shown);
  EXPECT_EQ(decode(decoder, palette), shown.samples);
}

TEST(ImageDecoderTest, SaysWhatIsNoImage) {
  ImageDecoder decoder;
  EXPECT_THAT(error_of_decoding(decoder, {}), HasSubstr("empty"));
  EXPECT_THAT(error_of_decoding(decoder, to_bytes("GIF89a and so on")), HasSubstr("neither JPEG nor PNG"));
  EXPECT_THAT(
      error_of_decoding(decoder,
                        encode_jpeg(make_picture(9, 9, 3, 1)).size() > 0 ? to_bytes("\xFF\xD8\xFF\xE0") : Bytes()),
      HasSubstr("bad JPEG: Premature end"));
}

TEST(ImageDecoderTest, RefusesWindowsAndBuffersThatDoNotFit) {
  ImageDecoder decoder;
  for (const Bytes& encoded : {encode_jpeg(make_picture(20, 30, 3, 1)), encode_png(make_picture(20, 30, 3, 1))}) {
    PixelBytes pixels(20 * 30 * 3);
    EXPECT_THROW(decoder.decode(encoded, std::span(pixels).first(pixels.size() - 1)), ConfigError);
    for (const ImageWindow& window : {ImageWindow{.top = 0, .left = 0, .height = 21, .width = 1},
                                      ImageWindow{.top = 19, .left = 0, .height = 2, .width = 1},
                                      ImageWindow{.top = -1, .left = 0, .height = 2, .width = 1},
                                      ImageWindow{.top = 0, .left = 29, .height = 1, .width = 2},
                                      ImageWindow{.top = 0, .left = 0, .height = 0, .width = 2}}) {
      const auto bytes = static_cast<std::size_t>(window.height * window.width) * 3;
      EXPECT_THROW(decoder.decode_window(encoded, window, std::span(pixels).first(bytes)), ConfigError);
    }
  }
}

TEST(ImageDecoderTest, RefusesGiantImagesBeforeAnythingIsAllocated) {
  ImageDecoder decoder;
  Bytes png = encode_png(make_picture(8, 8, 3, 1));
  Bytes jpeg = encode_jpeg(make_picture(8, 8, 3, 1));
  const std::byte start_of_frame[] = {std::byte{0xFF}, std::byte{0xC0}};
  const auto frame = std::search(jpeg.begin(), jpeg.end(), std::begin(start_of_frame), std::end(start_of_frame));
  std::fill_n(frame + 5, 4, std::byte{0xFA});  // 64250 x 64250
  EXPECT_THROW(decoder.read_size(jpeg), Error);
  EXPECT_THROW(decoder.decode(jpeg, {}), Error);
  std::fill_n(png.begin() + 17, 3, std::byte{0xFF});
  EXPECT_THROW(decoder.read_size(png), Error) << "and its checksum is wrong too";
}

TEST(ImageDecoderTest, NamesTheLibrariesBehindThePixels) {
  EXPECT_THAT(ImageDecoder::identity(), HasSubstr("libjpeg-turbo "));
  EXPECT_THAT(ImageDecoder::identity(), HasSubstr("islow fancy, ink inverted; libpng 1."));
}

TEST(ImageDecoderTest, CanBeMoved) {
  ImageDecoder first;
  const Bytes encoded = encode_jpeg(make_picture(9, 9, 3, 1));
  const PixelBytes pixels = decode(first, encoded);
  ImageDecoder second = std::move(first);
  EXPECT_EQ(decode(second, encoded), pixels);
}

// Tables of one image must never help to decode the next one: the result would depend on who decoded what before.
TEST(ImageDecoderTest, RemembersNothingOfTheImageBefore) {
  const Bytes whole = encode_jpeg(make_picture(40, 40, 3, 1), {.standard_tables = false});
  for (const int marker : {0xC4, 0xDB}) {  // Huffman and quantisation tables
    Bytes damaged = whole;
    for (std::size_t i = 0; i + 1 < damaged.size(); ++i) {
      if (damaged[i] == std::byte{0xFF} && damaged[i + 1] == static_cast<std::byte>(marker)) {
        damaged[i + 1] = std::byte{0xEA};  // an application's own segment instead
      }
    }
    ImageDecoder fresh, used;
    decode(used, whole);
    EXPECT_EQ(error_of_decoding(used, damaged), error_of_decoding(fresh, damaged));
    EXPECT_NE(error_of_decoding(used, damaged), "no error");
  }
}

}  // namespace
}  // namespace headrace::test
