#include "headrace/pipeline/operations/machinery/encoded_image.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/operations/operation_streams.h"

namespace headrace::test {
namespace {

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

}  // namespace
}  // namespace headrace::test
