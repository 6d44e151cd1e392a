// Pairs of rows, their shares, and the mixing of batches.
#include <bit>

#include "headrace/pipeline/operations/machinery/beta.h"
#include "headrace/pipeline/operations/machinery/mixer.h"
#include "headrace/pipeline/operations/machinery/pairing.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/operations/operation_streams.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

// P(X <= x) of Beta(a, a) by the trapezium rule in the angle t of x = sin^2 t, where nothing is infinite for a >=
// 1/2; below, the tails make it slow and only moments are compared.
double beta_distribution(double a, double x) {
  const auto integral = [&](double to) {
    constexpr int kSteps = 4000;
    double sum = 0;
    for (int i = 0; i <= kSteps; ++i) {
      const double t = to * i / kSteps;
      const double value = std::pow(std::sin(t) * std::cos(t), 2 * a - 1);
      sum += (i == 0 || i == kSteps ? 0.5 : 1.0) * value;
    }
    return sum * to / kSteps;
  };
  return integral(std::asin(std::sqrt(x))) / integral(std::acos(0.0));
}

std::vector<double> sample(double alpha, std::size_t count) {
  std::vector<double> values;
  for (std::uint64_t i = 0; i < count; ++i) {
    Philox random({.seed = 5, .record = i});
    values.push_back(draw_beta(alpha, random));
  }
  return values;
}

TEST(Beta, HasItsMomentsForSmallAndLargeAlpha) {
  for (const double alpha : {0.05, 0.2, 0.5, 0.51, 1.0, 2.0, 8.0, 300.0}) {
    constexpr std::size_t kCount = 40'000;
    double mean = 0, square = 0, fourth = 0;
    for (const double value : sample(alpha, kCount)) {
      ASSERT_GE(value, 0);
      ASSERT_LE(value, 1);
      const double off = value - 0.5;
      mean += value / kCount;
      square += off * off / kCount;
      fourth += off * off * off * off / kCount;
    }
    const double variance = 1 / (4 * (2 * alpha + 1));
    const double kurtosis = 3 - 6 / (2 * alpha + 3);
    EXPECT_NEAR(mean, 0.5, 4 * std::sqrt(variance / kCount)) << alpha;
    EXPECT_NEAR(square, variance, 0.03 * variance) << alpha;
    EXPECT_NEAR(fourth, kurtosis * variance * variance, 0.06 * kurtosis * variance * variance) << alpha;
  }
}

TEST(Beta, FollowsItsDistribution) {
  for (const double alpha : {0.5, 0.7, 1.0, 1.5, 4.0}) {
    constexpr std::size_t kCount = 20'000;
    std::vector<double> values = sample(alpha, kCount);
    std::ranges::sort(values);
    double furthest = 0;  // Kolmogorov's distance
    for (std::size_t i = 0; i < kCount; i += 200) {
      furthest =
          std::max(furthest, std::abs(beta_distribution(alpha, values[i]) - static_cast<double>(i) / kCount));
    }
    EXPECT_LT(furthest, 1.7 / std::sqrt(static_cast<double>(kCount))) << alpha;
  }
}

TEST(Beta, StandsTheSmallestAlpha) {
  for (const double value : sample(1e-3, 2000)) EXPECT_TRUE(value >= 0 && value <= 1);
}

// The bits must not change with compiler, library or processor.
TEST(Beta, IsTheSameOnEveryMachine) {
  std::uint64_t sum = 0;
  for (const double alpha : {0.1, 0.4, 1.0, 3.0}) {
    for (const double value : sample(alpha, 1000)) sum = sum * 31 + std::bit_cast<std::uint64_t>(value);
  }
  EXPECT_EQ(sum, 3154567465917215407U);
}

TEST(Pairing, TakesEachExampleOnce) {
  for (const std::int64_t examples : {2, 3, 10, 31, 512}) {
    const Pairing pairing({.seed = 1, .epoch = 2, .step = 3}, 4, examples);
    std::set<std::int64_t> seen;
    for (std::int64_t i = 0; i < Pairing::pairs_of(examples); ++i) {
      const Pair pair = pairing[i];
      EXPECT_NE(pair.first, pair.second);
      for (const std::int64_t at : {pair.first, pair.second}) {
        EXPECT_GE(at, 0);
        EXPECT_LT(at, examples);
        EXPECT_TRUE(seen.insert(at).second) << at << " is in two pairs";
      }
    }
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), examples / 2 * 2);
  }
  EXPECT_EQ(Pairing::pairs_of(0), 0);
  EXPECT_EQ(Pairing::pairs_of(1), 0);
}

TEST(Pairing, IsAnotherForEveryKey) {
  const auto of = [](const BatchKey& key, std::uint16_t operation) {
    const Pairing pairing(key, operation, 64);
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < 32; ++i) {
      all.push_back(pairing[i].first * 64 + pairing[i].second);
      all.push_back(pairing.random(i).next_u32());
    }
    return all;
  };
  const std::set<std::vector<std::int64_t>> different = {of({.seed = 1}, 0), of({.seed = 2}, 0),
                                                         of({.seed = 1, .epoch = 1}, 0),
                                                         of({.seed = 1, .step = 1}, 0), of({.seed = 1}, 1)};
  EXPECT_EQ(different.size(), 5U);
  EXPECT_EQ(of({.seed = 1}, 0), of({.seed = 1}, 0));
}

TEST(Mixer, GivesTheSameBitsThroughPinnedMemoryAndCopies) {
  const Dataset dataset = mixed(mixup() | cutmix(), normalize(kColourMean, kColourStd));
  const auto expected = cpu_digests_of(dataset, {.seed = 4, .threads = 1});
  DeviceGroup devices = own_memory_devices(3);
  Loader loader(dataset, devices, {.seed = 4, .threads = 2});
  EXPECT_EQ(digests_of(loader, devices), expected);
}

TEST(Mixer, KeepsEachLabelASumOfOne) {
  for (const Rows& rows : batches_of(mixed(cutmix() | mixup(), flip()))) {
    for (const auto& label : rows.labels) {
      float sum = 0;
      for (const float value : label) sum += value;
      EXPECT_NEAR(sum, 1, 1e-5);
    }
  }
}

TEST(Mixer, HandlesBatchesOfOneAndOfTheWholeEpoch) {
  for (const std::int64_t global : {1, 2, 53, 100}) {
    const Dataset dataset = samples().map(one_hot(10)).batch({.global_batch = global}).map(mixup());
    const auto expected = cpu_digests_of(dataset, {.seed = 4, .threads = 1});
    EXPECT_EQ(digests_of(dataset, 8, {.seed = 4, .threads = 4}), expected) << global;
  }
}

TEST(Mixer, FailsWithTheErrorOfARecord) {
  // Label 9 is no class of nine.
  const Dataset dataset =
      Dataset::from(noise_images(53, 4, 4)).map(one_hot(9)).batch({.global_batch = 6}).map(mixup());
  DeviceGroup devices = test_devices(1);
  Loader loader(dataset, devices, {.threads = 2});
  EXPECT_TRUE(loader.next());
  const DataError error = error_of<DataError>([&] { loader.next(); });
  EXPECT_EQ(error.location().record, 9U);
  EXPECT_THAT(error.what(), HasSubstr("label 9 where there are 9 classes"));
  EXPECT_THAT(error.what(), HasSubstr("one_hot"));
}

TEST(Mixer, SaysWhereItBelongs) {
  EXPECT_THAT(refusal_of_augmenting([] { return samples().batch({.global_batch = 4}).map(mixup()); }),
              AllOf(HasSubstr("field 'label' is int64"), HasSubstr("one_hot")));
  EXPECT_THAT(
      refusal_of_augmenting([] { return samples().map(one_hot(10) | mixup()).batch({.global_batch = 4}); }),
      AllOf(HasSubstr("mixup"), HasSubstr("after batch()")));
  EXPECT_EQ(
      refusal_of_augmenting([] { return samples().map(one_hot(10)).batch({.global_batch = 4}).map(flip()); }), "");
  EXPECT_THAT(refusal_of_augmenting(
                  [] { return samples().map(one_hot(10)).batch({.global_batch = 4}).map(mixup() | flip()); }),
              HasSubstr("flip(probability=0.5, alternating=false) stands after mixup("));
  EXPECT_THAT(refusal_of_augmenting(
                  [] { return samples().map(flatten() | one_hot(10)).batch({.global_batch = 4}).map(cutmix()); }),
              HasSubstr("three axes"));
  EXPECT_THAT(refusal_of_augmenting(
                  [] { return samples().map(one_hot(10)).batch({.global_batch = 4}).map(mixup({.alpha = 0})); }),
              HasSubstr("alpha 0"));
  EXPECT_EQ(refusal_of_augmenting(
                [] { return samples().map(one_hot(10)).batch({.global_batch = 4}).prefetch(1).map(mixup()); }),
            "");
  EXPECT_EQ(refusal_of_augmenting(
                [] { return samples().map(flatten() | one_hot(10)).batch({.global_batch = 4}).map(mixup()); }),
            "");
}

TEST(Mixer, IsPartOfTheStreamsIdentityAndExplained) {
  const Dataset plain = samples().map(one_hot(10)).batch({.global_batch = 4});
  EXPECT_NE(plain.fingerprint(), plain.map(mixup()).fingerprint());
  EXPECT_NE(plain.map(cutmix()).fingerprint(), plain.map(mixup()).fingerprint());
  EXPECT_THAT(plain.map(mixup({.alpha = 0.5F})).explain(),
              HasSubstr("mixup(alpha=0.5, probability=1)  [on batches]"));
}

TEST(Mixer, NeedsALabel) {
  const auto source =
      std::make_shared<FakeSource>(std::vector<std::vector<std::byte>>{encode_jpeg(make_picture(20, 24, 3, 1))});
  const Dataset dataset =
      Dataset::from(source).decode().map(random_resized_crop({.size = 8})).batch({.global_batch = 5});
  EXPECT_THAT(refusal_of_augmenting([&] { return dataset.map(mixup()); }), HasSubstr("label"));
}

// Read from a tar by reader threads: see that pairs wait for rows that come late and in any order.
TEST(Mixer, WaitsForRowsThatReadersFetch) {
  TempFolder folder;
  const std::filesystem::path tar = folder.write("a.tar", pack_images(make_image_files()).finish());
  const Dataset dataset = Dataset::from(open_source(tar, Split::kTrain))
                              .decode()
                              .map(random_resized_crop({.size = 8}) | one_hot(3))
                              .batch({.global_batch = 5})
                              .map(mixup() | cutmix());
  const auto expected = cpu_digests_of(dataset, {.seed = 4, .epochs = 3, .threads = 1, .reader_threads = 1});
  ASSERT_EQ(expected.size(), 9U);
  for (const int replicas : {1, 2, 3}) {
    EXPECT_EQ(digests_of(dataset, replicas, {.seed = 4, .epochs = 3, .threads = 4, .reader_threads = 6}),
              expected);
  }
}

}  // namespace
}  // namespace headrace::test
