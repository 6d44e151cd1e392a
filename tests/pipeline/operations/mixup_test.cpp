#include "headrace/pipeline/operations/machinery/beta.h"
#include "headrace/pipeline/operations/machinery/pairing.h"
#include "headrace/tests/pipeline/operations/operation_streams.h"

namespace headrace::test {
namespace {

TEST(Mixup, BlendsEachExampleWithItsPartnersOriginal) {
  for (const bool bytes : {false, true}) {
    const Operations before = bytes ? flip() : flip() | normalize(kColourMean, kColourStd);
    const auto plain = batches_of(samples().map(before | one_hot(10)).batch({.global_batch = kGlobal}), 2);
    const auto mixed_batches = batches_of(
        samples().map(before | one_hot(10)).batch({.global_batch = kGlobal}).map(mixup({.alpha = 0.4F})), 2);
    const auto number = static_cast<std::uint16_t>(bytes ? 2 : 3);
    ASSERT_EQ(plain.size(), mixed_batches.size());
    for (std::size_t sequence = 0; sequence < plain.size(); ++sequence) {
      const Rows& was = plain[sequence];
      const Rows& is = mixed_batches[sequence];
      const auto examples = static_cast<std::int64_t>(was.images.size());
      const Pairing pairing({.seed = 4, .epoch = sequence / 5, .step = sequence % 5}, number, examples);
      std::vector<bool> in_pair(was.images.size());
      for (std::int64_t i = 0; i < Pairing::pairs_of(examples); ++i) {
        const auto a = static_cast<std::size_t>(pairing[i].first), b = static_cast<std::size_t>(pairing[i].second);
        in_pair[a] = in_pair[b] = true;
        Philox random = pairing.random(i);
        random.uniform();  // whether at all
        const double share = draw_beta(double{0.4F}, random);
        const float tolerance = bytes ? 0.51F : 1e-5F;
        expect_close(is.images[a], blend(was.images[a], was.images[b], share), tolerance);
        expect_close(is.images[b], blend(was.images[b], was.images[a], share), tolerance);
        expect_close(is.labels[a], blend(was.labels[a], was.labels[b], share), 1e-6F);
        expect_close(is.labels[b], blend(was.labels[b], was.labels[a], share), 1e-6F);
      }
      for (std::size_t row = 0; row < in_pair.size(); ++row) {
        if (in_pair[row]) continue;
        EXPECT_EQ(is.images[row], was.images[row]) << "the odd one out stays";
      }
    }
  }
}

TEST(Mixup, LeavesPairsAloneByItsProbability) {
  const auto plain = batches_of(samples().map(one_hot(10)).batch({.global_batch = 53}));
  const auto never =
      batches_of(samples().map(one_hot(10)).batch({.global_batch = 53}).map(mixup({.probability = 0})));
  EXPECT_EQ(never[0].images, plain[0].images);
  const auto half = batches_of(
      samples().map(one_hot(10)).batch({.global_batch = 53}).map(mixup({.alpha = 5, .probability = 0.5F})));
  int same = 0;
  for (std::size_t i = 0; i < 53; ++i) same += half[0].images[i] == plain[0].images[i] ? 1 : 0;
  EXPECT_GT(same, 10);
  EXPECT_LT(same, 43);
}

}  // namespace
}  // namespace headrace::test
