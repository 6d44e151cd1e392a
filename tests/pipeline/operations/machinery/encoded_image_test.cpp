#include "headrace/pipeline/operations/machinery/encoded_image.h"

#include "headrace/tests/pipeline/operations/operation_streams.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace {
namespace {

using namespace test;

// JPEGs that come again and again are mapped when they first come, and cut from then on; those of two epochs are
// not.
TEST(DecodedWindows, AreTheSameOfImagesThatComeOftenAndSeldom) {
  TarBuilder tar;
  for (int i = 0; i < 30; ++i) {
    const JpegOptions options{.horizontal = 1 + i % 2, .vertical = 1 + i % 2, .progressive = i % 7 == 3};
    tar.add((i % 2 == 0 ? "train/cat/" : "train/dog/") + std::to_string(i) + ".jpg",
            encode_jpeg(make_picture(70 + i, 90, 3, static_cast<std::uint64_t>(i)), options));
  }
  const TempFolder folder;
  const SourcePtr source = image_archive(folder.write("images.tar", tar.finish()));
  for (const Operations& operations : {random_resized_crop({.size = 16}) | flip(), resize(24) | center_crop(16)}) {
    const Dataset dataset = Dataset::from(source).shuffle().decode().map(operations).batch({.global = kGlobal});
    const auto seldom = cpu_digests_of(dataset, {.seed = 4, .epochs = 2, .threads = 1});
    for (const int threads : {1, 3}) {
      auto often = digests_of(dataset, 2, {.seed = 4, .epochs = 5, .threads = threads});
      often.resize(seldom.size());
      EXPECT_EQ(often, seldom);
    }
    // Room for some of the maps, and for the coefficients of a progressive image.
    auto tight = digests_of(dataset, 1,
                            {.seed = 4, .epochs = 5, .threads = 1, .prefetch = 1, .memory_budget_bytes = 5 << 16});
    tight.resize(seldom.size());
    EXPECT_EQ(tight, seldom);
  }
}

}  // namespace
}  // namespace headrace
