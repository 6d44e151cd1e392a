#include "headrace/tests/pipeline/operations/crop_windows.h"
#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"
#include "headrace/tests/pipeline/operations/operation_streams.h"

namespace headrace::test {
namespace {

TEST(PadCrop, EveryPlaceComesUpAndNoOther) {
  const WindowChooser crop = chooser(pad_crop(6, 2));
  std::set<std::pair<std::int64_t, std::int64_t>> places;
  for (std::uint64_t record = 0; record < 500; ++record) {
    const CropWindow window = window_of(crop, 4, 5, record);
    places.emplace(window.top, window.left);
    EXPECT_EQ(window.height, 6);
    EXPECT_EQ(window.width, 6);
  }
  EXPECT_EQ(places.size(), 3U * 4U);
  EXPECT_EQ(*places.begin(), std::pair(std::int64_t{0}, std::int64_t{0}));
  EXPECT_EQ(*places.rbegin(), std::pair(std::int64_t{2}, std::int64_t{3}));
}

TEST(PadCrop, PadsBeforeNormalizingWhereItStandsBefore) {
  const Image image = random_image(4, 4, 3, 1);
  const auto before = run_chain(pad_crop(12, 4) | normalize(kColourMean, kColourStd), image, DType::kU8);
  const auto after = run_chain(normalize(kColourMean, kColourStd) | pad_crop(12, 4), image, DType::kU8);
  EXPECT_NEAR(before.values[0], -kColourMean[0] / kColourStd[0], 1e-6);
  EXPECT_EQ(after.values[0], 0.0F);
}

TEST(PadCrop, DrawsAnewForEveryRecordAndPass) {
  const Image image = random_image(32, 32, 3, 8);
  const Operations crop = pad_crop(32, 4);
  const auto first = run_chain(crop, image, DType::kU8, 0, 0).values;
  int other_record = 0, other_pass = 0;
  for (std::uint64_t i = 1; i <= 10; ++i) {
    other_record += run_chain(crop, image, DType::kU8, i, 0).values != first ? 1 : 0;
    other_pass += run_chain(crop, image, DType::kU8, 0, i).values != first ? 1 : 0;
  }
  EXPECT_GE(other_record, 8);
  EXPECT_GE(other_pass, 8);
}

}  // namespace
}  // namespace headrace::test
