#include "headrace/pipeline/operations/machinery/pairing.h"
#include "headrace/tests/pipeline/operations/operation_streams.h"

namespace headrace::test {
namespace {

TEST(Cutmix, ExchangesOneRectangleAndBlendsLabelsByItsArea) {
  constexpr std::size_t kRows = 12, kColumns = 10;
  for (const bool planes : {false, true}) {
    const Operations before =
        planes ? to_layout(ImageLayout::kChannelsFirst) : to_layout(ImageLayout::kChannelsLast);
    const auto plain = batches_of(samples().map(before | one_hot(10)).batch({.global_batch = kGlobal}));
    const auto cut =
        batches_of(samples().map(before | one_hot(10)).batch({.global_batch = kGlobal}).map(cutmix()));
    int exchanged = 0;
    for (std::size_t step = 0; step < plain.size(); ++step) {
      const auto examples = static_cast<std::int64_t>(plain[step].images.size());
      const Pairing pairing({.seed = 4, .epoch = 0, .step = step}, 2, examples);
      for (std::int64_t i = 0; i < Pairing::pairs_of(examples); ++i) {
        const auto a = static_cast<std::size_t>(pairing[i].first), b = static_cast<std::size_t>(pairing[i].second);
        // Where a pixel of a differs from before it is b's; those places are a full rectangle.
        std::size_t top = kRows, bottom = 0, left = kColumns, right = 0, moved = 0;
        for (std::size_t y = 0; y < kRows; ++y) {
          for (std::size_t x = 0; x < kColumns; ++x) {
            bool from_b = false;
            for (std::size_t c = 0; c < 3; ++c) {
              const std::size_t at = planes ? (c * kRows + y) * kColumns + x : (y * kColumns + x) * 3 + c;
              const float was_a = plain[step].images[a][at], was_b = plain[step].images[b][at];
              from_b |= cut[step].images[a][at] != was_a;
              EXPECT_EQ(cut[step].images[a][at] + cut[step].images[b][at], was_a + was_b);
            }
            if (!from_b) continue;
            ++moved;
            top = std::min(top, y);
            bottom = std::max(bottom, y + 1);
            left = std::min(left, x);
            right = std::max(right, x + 1);
          }
        }
        EXPECT_EQ(moved, moved > 0 ? (bottom - top) * (right - left) : 0);
        exchanged += moved > 0 ? 1 : 0;
        const double share = 1 - static_cast<double>(moved) / (kRows * kColumns);
        expect_close(cut[step].labels[a], blend(plain[step].labels[a], plain[step].labels[b], share), 1e-6F);
        expect_close(cut[step].labels[b], blend(plain[step].labels[b], plain[step].labels[a], share), 1e-6F);
      }
    }
    EXPECT_GT(exchanged, 15);
  }
}

}  // namespace
}  // namespace headrace::test
