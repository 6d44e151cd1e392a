#include "headrace/pipeline/operations/machinery/mixer.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/operations/operation_streams.h"

namespace headrace::test {
namespace {

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
              HasSubstr("flip(probability=0.5, draw=each_pass) stands after mixup("));
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
