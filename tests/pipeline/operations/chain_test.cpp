#include "headrace/pipeline/operations/chain.h"

#include "headrace/pipeline/operations/random_resized_crop.h"
#include "headrace/tests/pipeline/operations/chain_fixture.h"
#include "headrace/tests/support/images.h"

namespace headrace {
namespace {

using namespace test;

// A chain on the bytes of an encoded image, decode first.
std::vector<float> run_encoded(const Operations& operations, const Bytes& encoded) {
  std::vector<SampleStage> stages = planned(operations);
  stages.insert(stages.begin(), DecodeStage{});
  const Field field{.name = "image", .dtype = DType::kU8, .shape = {}, .encoding = Encoding::kImage};
  const Chain chain(field, stages, ChainPlace::kAfterCache);
  std::vector<std::byte> row(static_cast<std::size_t>(chain.output().shape.elements()));
  Scratch scratch;
  QuietProbe probe;
  chain.run_into({.bytes = encoded, .shape = {static_cast<std::int64_t>(encoded.size())}},
                 {.seed = 11, .scratch = &scratch, .probe = &probe}, row);
  return from_elements(row, DType::kU8);
}

Image decoded(const Bytes& encoded) {
  ImageDecoder decoder;
  const ImageSize size = decoder.read_size(encoded);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(size.height * size.width * 3));
  decoder.decode(encoded, pixels);
  return {.height = size.height, .width = size.width, .channels = 3, .values = {pixels.begin(), pixels.end()}};
}

TEST(Chain, DecodingOnlyTheWindowChangesNothing) {
  const Bytes encoded = encode_jpeg(make_picture(90, 120, 3, 1));
  const Operations crop = random_resized_crop({.size = 32}) | flip();
  const auto expected = run_chain(crop, decoded(encoded), DType::kU8).values;
  EXPECT_EQ(run_encoded(crop, encoded), expected);
}

TEST(Chain, RandomResizedCropEqualsCropThenResize) {
  const Image image = random_image(50, 70, 3, 2);
  for (std::uint64_t record = 0; record < 20; ++record) {
    Philox random = draws(0, record);
    const ImageWindow window = draw_window({.size = 16}, {.height = 50, .width = 70}, random);
    std::vector<std::uint8_t> cropped;
    for (std::int64_t y = 0; y < window.height; ++y) {
      for (std::int64_t x = 0; x < window.width * 3; ++x) {
        cropped.push_back(static_cast<std::uint8_t>(
            image.values[static_cast<std::size_t>(((window.top + y) * 70 + window.left) * 3 + x)]));
      }
    }
    std::vector<std::uint8_t> expected(16 * 16 * 3);
    Resampler().resize(cropped.data(), {window.height, window.width}, expected.data(), {16, 16}, 3);
    const auto actual = run_chain(random_resized_crop({.size = 16}), image, DType::kU8, record).values;
    expect_near(actual, {expected.begin(), expected.end()}, 0);
  }
}

TEST(Chain, ResizesTheShorterSide) {
  const Image image = random_image(20, 45, 3, 2);
  const auto result = run_chain(resize(10), image, DType::kU8);
  EXPECT_EQ(result.field.shape, (Shape{10, 22, 3}));
  EXPECT_EQ(run_chain(resize(10) | center_crop(8), image, DType::kU8).field.shape, (Shape{8, 8, 3}));
}

// What a centre crop leaves of an image that was resized whole.
std::vector<float> resized_and_cropped(const Image& image, int shorter, int size) {
  const auto whole = run_chain(resize(shorter), image, DType::kU8);
  const std::int64_t height = whole.field.shape[0], width = whole.field.shape[1], channels = image.channels;
  // Half of what is cut away, of an odd number the half that is even.
  const auto half = [](std::int64_t cut) { return (cut + (cut / 2) % 2) / 2; };
  std::vector<float> cropped;
  for (std::int64_t y = half(height - size); y < half(height - size) + size; ++y) {
    const auto row = whole.values.begin() + (y * width + half(width - size)) * channels;
    cropped.insert(cropped.end(), row, row + size * channels);
  }
  return cropped;
}

TEST(Chain, MakingOnlyWhatACropLeavesChangesNothing) {
  for (const std::int64_t channels : {1, 3}) {
    for (const auto& [height, width] : {std::pair{20, 45}, {61, 33}, {97, 98}, {9, 9}}) {
      const Image image = random_image(height, width, channels, 2);
      for (const int shorter : {9, 16, 31}) {
        for (const int size : {1, 8, 9}) {
          const auto actual = run_chain(resize(shorter) | center_crop(size), image, DType::kU8).values;
          EXPECT_EQ(actual, resized_and_cropped(image, shorter, size)) << height << " " << shorter << " " << size;
        }
      }
    }
  }
}

TEST(Chain, DecodingOnlyWhatACropLeavesChangesNothing) {
  for (const auto& [height, width] : {std::pair{90, 120}, {200, 64}}) {
    const Bytes encoded = encode_jpeg(make_picture(height, width, 3, 1));
    EXPECT_EQ(run_encoded(resize(36) | center_crop(32), encoded), resized_and_cropped(decoded(encoded), 36, 32));
  }
}

TEST(Chain, RefusesToResizeALineToMorePixelsThanAnImageMayHave) {
  const Field field{.name = "image", .dtype = DType::kU8, .shape = {Shape::kDynamic, Shape::kDynamic, 3}};
  const auto stages = planned(resize(16384) | center_crop(8));
  const Chain chain(field, stages, ChainPlace::kAfterCache);
  Scratch scratch;
  QuietProbe probe;
  const std::vector<std::byte> line(3 * 20'000);
  std::vector<std::byte> row(8 * 8 * 3);
  EXPECT_THROW(
      chain.run_into({.bytes = line, .shape = {1, 20'000, 3}}, {.scratch = &scratch, .probe = &probe}, row),
      Error);
}

TEST(Chain, GivesUserFunctionsInputAndRandomNumbers) {
  UserMap map{.name = "sum", .output = {.dtype = DType::kF32, .shape = {2}}};
  map.function = [](std::span<const std::byte> in, const Shape& shape, std::span<std::byte> out, Philox& random) {
    EXPECT_EQ(shape, (Shape{4, 5, 3}));
    const float values[2] = {static_cast<float>(in.size()), random.uniform()};
    std::memcpy(out.data(), values, sizeof values);
  };
  const auto result = run_chain(user_map(map), random_image(4, 5, 3, 1), DType::kU8, 9);
  EXPECT_EQ(result.field.shape, (Shape{2}));
  expect_near(result.values, {60, draws(0, 9).uniform()}, 0);
}

TEST(Chain, NamesTheStepThatFailed) {
  UserMap map{.name = "bad", .output = {.dtype = DType::kF32, .shape = {2}}};
  map.function = [](auto&&...) { throw std::runtime_error("no luck"); };
  try {
    run_chain(flip() | user_map(map), random_image(4, 5, 3, 1), DType::kU8);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "map user_map 'bad': no luck");
  }
  map.function = [](auto&&...) { throw 42; };
  EXPECT_THROW(run_chain(user_map(map), random_image(4, 5, 3, 1), DType::kU8), Error);
}

}  // namespace
}  // namespace headrace
