// Windows of encoded images, drawn ahead, and images written anew.
#include "headrace/pipeline/operations/machinery/crop_window.h"
#include "headrace/pipeline/decoders/jpeg_writer.h"
#include "headrace/pipeline/operations/machinery/drawn_ahead.h"
#include "headrace/pipeline/operations/machinery/encoded_image.h"
#include "headrace/pipeline/operations/machinery/image_recoder.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/operations/crop_windows.h"
#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"
#include "headrace/tests/pipeline/operations/operation_streams.h"
#include "headrace/tests/support/oriented.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

// An operation of one file, which nothing else names.
struct UpperHalf {};

class UpperHalfDefinition final : public OperationDefinition {
 public:
  std::string describe() const override { return "upper_half()"; }
  Field apply(const Field& before) const override {
    Field after = before;
    after.shape = {before.shape[0] / 2, before.shape[1], before.shape[2]};
    return after;
  }
  bool join(PixelPass& pass, const OperationPlace& /*place*/) const override {
    class Half final : public WindowChange {
      void change(CropWindow& window, const StepContext& /*context*/) const override {
        window.cut({.height = window.height / 2, .width = window.width});
      }
    };
    pass.window.add(std::make_shared<Half>());
    return true;
  }
};

OperationPtr define(UpperHalf /*options*/) { return std::make_shared<UpperHalfDefinition>(); }

TEST(WindowChooser, NothingIsTheWholeImage) {
  const CropWindow window = window_of({}, 5, 7);
  EXPECT_EQ(window.height, 5);
  EXPECT_EQ(window.width, 7);
  EXPECT_FALSE(window.mirrored);
  EXPECT_TRUE(WindowChooser().empty());
}

TEST(WindowChooser, PaddingMustComeFirstAndImagesBeLargeEnough) {
  WindowChooser made = chooser(flip());
  EXPECT_FALSE(made.add(ImageBorder{.pixels = 1}));
  EXPECT_THROW(window_of(chooser(pad_crop(8, 1)), 5, 9), Error);
  EXPECT_THROW(window_of(chooser(pad_crop(4, 3, Padding::kReflect)), 3, 9), Error);
  EXPECT_THROW(window_of(chooser(center_crop(8)), 9, 5), Error);
}

// Wherever it stands among those that move pixels, in one pass with what follows.
TEST(WindowChooser, TakesOperationsThatNothingElseNames) {
  const Operation upper_half = UpperHalf{};
  const Image image = random_image(12, 10, 3, 4);
  for (const Operations& rest : {Operations(cast(DType::kF32)), normalize({0.5F}, {0.25F})}) {
    const auto whole = run_chain(pad_crop(8, 2) | flip() | rest, image, DType::kU8).values;
    const std::vector<float> expected(whole.begin(),
                                      whole.begin() + static_cast<std::ptrdiff_t>(whole.size() / 2));
    const auto last = run_chain(pad_crop(8, 2) | flip() | upper_half | rest, image, DType::kU8);
    EXPECT_EQ(last.field.shape, (Shape{4, 8, 3}));
    EXPECT_EQ(last.values, expected);
  }
  PixelPass pass({.name = "image", .dtype = DType::kU8, .shape = {12, 10, 3}}, kDevicePass);
  EXPECT_TRUE(pass.add(upper_half.definition(), {})) << "on a device, too";
}

constexpr std::uint64_t kFar = std::uint64_t{1} << 40;

class DrawnAheadTest : public testing::TestWithParam<std::size_t> {
 protected:
  DrawnAheadTest() {
    for (std::uint64_t i = 0; i < GetParam(); ++i) {
      records_.push_back(i % 2 == 0 ? i : kFar + i);
      passes_.push_back(i % 3);
    }
    drawn_.draw(kSeed, operations_, records_, passes_);
  }

  RandomKey key(std::size_t row, std::uint16_t operation) const {
    return {.seed = kSeed,
            .epoch = static_cast<std::uint32_t>(passes_[row]),
            .record = records_[row],
            .operation = operation};
  }
  // Compares more numbers than were drawn ahead.
  static void expect_equal(Philox found, Philox expected) {
    for (int i = 0; i < 10; ++i) ASSERT_EQ(found.next_u32(), expected.next_u32()) << i;
  }

  static constexpr std::uint64_t kSeed = 0x1234'5678'9ABC'DEF0;
  std::vector<std::uint16_t> operations_{3, 0, 65000};
  std::vector<std::uint64_t> records_, passes_;
  DrawnAhead drawn_;
};

TEST_P(DrawnAheadTest, GivesTheNumbersOfEachKey) {
  for (std::size_t row = 0; row < records_.size(); ++row) {
    for (const std::uint16_t operation : operations_) {
      expect_equal(drawn_.random(key(row, operation), row), Philox(key(row, operation)));
    }
  }
}

TEST_P(DrawnAheadTest, DrawsAnewWhatWasNotDrawn) {
  RandomKey other = key(0, 3);
  const auto expect_own = [&](std::size_t row) { expect_equal(drawn_.random(other, row), Philox(other)); };
  expect_own(records_.size());
  other.operation = 4;
  expect_own(0);
  other = key(0, 3);
  ++other.epoch;
  expect_own(0);
  other = key(0, 3);
  other.seed = 1;
  expect_own(0);
  other = key(0, 3);
  other.record = 77;
  expect_own(0);
}

TEST_P(DrawnAheadTest, ForgetsWhatWasDrawnBefore) {
  const std::vector<std::uint64_t> record{5}, pass{1};
  drawn_.draw(kSeed, operations_, record, pass);
  for (std::size_t row = 0; row < records_.size(); ++row) {
    expect_equal(drawn_.random(key(row, 0), row), Philox(key(row, 0)));
  }
}

INSTANTIATE_TEST_SUITE_P(Records, DrawnAheadTest, testing::Values(1, 15, 16, 17, DrawnAhead::kRecords));

// JPEGs that come again get an index when they first come; those of a single epoch do not.
TEST(DecodedWindows, AreTheSameOfImagesThatComeOftenAndOnce) {
  TarBuilder tar;
  for (int i = 0; i < 30; ++i) {
    const JpegOptions options{.horizontal = 1 + i % 2, .vertical = 1 + i % 2, .progressive = i % 7 == 3};
    tar.add((i % 2 == 0 ? "train/cat/" : "train/dog/") + std::to_string(i) + ".jpg",
            encode_jpeg(make_picture(70 + i, 90, 3, static_cast<std::uint64_t>(i)), options));
  }
  const TempFolder folder;
  const SourcePtr source = image_archive(folder.write("images.tar", tar.finish()));
  for (const Operations& operations : {random_resized_crop({.size = 16}) | flip(), resize(24) | center_crop(16)}) {
    const Dataset dataset =
        Dataset::from(source).shuffle().decode().map(operations).batch({.global_batch = kGlobal});
    const auto once = cpu_digests_of(dataset, {.seed = 4, .epochs = 1, .threads = 1});
    for (const int threads : {1, 3}) {
      auto often = digests_of(dataset, 2, {.seed = 4, .epochs = 5, .threads = threads});
      often.resize(once.size());
      EXPECT_EQ(often, once);
    }
    // Room for some of the indexes, and for the coefficients of a progressive image.
    auto tight = digests_of(dataset, 1,
                            {.seed = 4, .epochs = 5, .threads = 1, .prefetch = 1, .memory_budget_bytes = 5 << 16});
    tight.resize(once.size());
    EXPECT_EQ(tight, once);
  }
}

// A source that says so is believed: of its images nothing is read below the window.
TEST(DecodedWindows, OfCheckedImagesNeedNothingElse) {
  Bytes cut = encode_jpeg(make_picture(400, 40, 3, 1));
  cut.resize(cut.size() * 3 / 4);
  const auto run = [&](bool checked, std::uint64_t epochs) {
    const Dataset dataset =
        Dataset::from(std::make_shared<FakeSource>(std::vector<std::vector<std::byte>>{cut}, checked))
            .decode()
            .map(resize(24) | center_crop(16))
            .batch({.global_batch = 1});
    return cpu_digests_of(dataset, {.epochs = epochs, .threads = 1});
  };
  EXPECT_NO_THROW(run(true, 1));
  EXPECT_THROW(run(false, 1), DataError);
  EXPECT_THROW(run(true, 5), DataError) << "its index would be wrong";
}

std::vector<std::uint8_t> decode_as(std::span<const std::byte> encoded, const ImageSize& size) {
  ImageDecoder decoder;
  EXPECT_EQ(decoder.read_size(encoded), size);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(size.height * size.width * 3));
  decoder.decode(encoded, pixels);
  return pixels;
}

double mean_change(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(int{a[i]} - int{b[i]});
  return sum / static_cast<double>(a.size());
}

// Smooth, so that a JPEG of good quality is near it.
std::vector<std::uint8_t> slope(const ImageSize& size) {
  std::vector<std::uint8_t> pixels;
  for (std::int64_t y = 0; y < size.height; ++y) {
    for (std::int64_t x = 0; x < size.width; ++x) {
      for (std::int64_t c = 0; c < 3; ++c) pixels.push_back(static_cast<std::uint8_t>((x + y) / (c + 1)));
    }
  }
  return pixels;
}

TEST(JpegWriter, WritesWhatDecodesToNearlyTheSame) {
  const ImageSize size{.height = 37, .width = 53};
  const std::vector<std::uint8_t> pixels = slope(size);
  std::vector<std::byte> fine, rough, again;
  write_jpeg(pixels, size, 95, fine);
  write_jpeg(pixels, size, 10, rough);
  write_jpeg(pixels, size, 95, again);
  EXPECT_LT(mean_change(decode_as(fine, size), pixels), 1.5);
  EXPECT_LT(rough.size(), fine.size());
  EXPECT_EQ(fine, again);
}

TEST(JpegWriter, RefusesWhatIsNoJpeg) {
  std::vector<std::byte> encoded;
  const std::vector<std::uint8_t> line(65501 * 3);
  EXPECT_THROW(write_jpeg(line, {.height = 1, .width = 65501}, 90, encoded), Error);
  EXPECT_THROW(write_jpeg(std::span(line).first(3), {.height = 1, .width = 1}, 0, encoded), ConfigError);
  EXPECT_THROW(write_jpeg(std::span(line).first(3), {.height = 1, .width = 2}, 90, encoded), ConfigError);
}

TEST(JpegWriter, WritesTheOrientationAndNothingElseChanges) {
  const ImageSize size{.height = 37, .width = 53};
  const std::vector<std::uint8_t> pixels = slope(size);
  std::vector<std::byte> plain, oriented;
  write_jpeg(pixels, size, 90, plain);
  for (int value = 2; value <= 8; ++value) {
    write_jpeg(pixels, size, 90, oriented, static_cast<Orientation>(value));
    EXPECT_EQ(static_cast<int>(exif_orientation(oriented)), value);
    EXPECT_EQ(decode_as(oriented, size), decode_as(plain, size));
  }
}

TEST(ImageRecoder, KeepsTheOrientation) {
  ImageRecoder recoder({.max_side = 20});
  const Bytes image = jpeg_with_orientation(encode_jpeg(make_picture(40, 50, 3, 1)), Orientation::kRightTop);
  EXPECT_EQ(exif_orientation(recoder.recode(image)), Orientation::kRightTop);
  EXPECT_EQ(exif_orientation(recoder.recode(encode_jpeg(make_picture(40, 50, 3, 1)))), Orientation::kTopLeft);
}

TEST(ImageRecoder, ReducesTheLongerSide) {
  EXPECT_EQ(fit_longer_side({.height = 375, .width = 500}, 256), (ImageSize{192, 256}));
  EXPECT_EQ(fit_longer_side({.height = 500, .width = 333}, 250), (ImageSize{250, 167}));
  EXPECT_EQ(fit_longer_side({.height = 100, .width = 256}, 256), (ImageSize{100, 256}));
  EXPECT_EQ(fit_longer_side({.height = 1, .width = 60000}, 10), (ImageSize{1, 10}));
}

TEST(ImageRecoder, ResizesAntialiased) {
  const ImageSize size{.height = 120, .width = 160}, half{.height = 60, .width = 80};
  std::vector<std::byte> encoded;
  write_jpeg(slope(size), size, 95, encoded);
  ImageRecoder recoder({.max_side = 80, .quality = 95});
  // Half of a slope is a slope twice as steep.
  std::vector<std::uint8_t> expected;
  for (std::int64_t y = 0; y < half.height; ++y) {
    for (std::int64_t x = 0; x < half.width; ++x) {
      for (std::int64_t c = 0; c < 3; ++c)
        expected.push_back(static_cast<std::uint8_t>((2 * x + 2 * y + 1) / (c + 1)));
    }
  }
  EXPECT_LT(mean_change(decode_as(recoder.recode(encoded), half), expected), 2);
}

TEST(ImageRecoder, KeepsTheBytesOfWhatFits) {
  const Bytes png = encode_png(make_picture(9, 14, 3, 1));
  EXPECT_EQ(ImageRecoder({.max_side = 14}).recode(png).data(), png.data());
  EXPECT_EQ(ImageRecoder(RecodeOptions{}).recode(png).data(), png.data());
  ImageRecoder again({.max_side = 14, .quality = 90});
  EXPECT_NE(again.recode(png).data(), png.data());
}

}  // namespace
}  // namespace headrace::test
