#include "headrace/pipeline/dataset.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/streams.h"

namespace headrace::test {
namespace {

std::string refusal_of_plan(const Dataset& dataset) {
  return message_of([&] { dataset.explain(); });
}

SourcePtr encoded() { return std::make_shared<FakeSource>(std::vector<std::vector<std::byte>>(3)); }

TEST(Dataset, ExplainsThePlanAfterPushDown) {
  const Dataset dataset = Dataset::from(encoded())
                              .decode()
                              .cache(memory())
                              .shuffle({.seed = 7})
                              .map(pad_crop(32, 4) | flip())
                              .take(2)
                              .batch({.global_batch = 2})
                              .prefetch(3);
  EXPECT_EQ(dataset.explain(),
            "source(fake images, 3 records)\n"
            "shuffle(seed=7, reshuffle_each_epoch=true)  [on indices]\n"
            "take(count=2)  [on indices]\n"
            "decode()\n"
            "cache(memory)\n"
            "pad_crop(size=32, pad=4, padding=zero)\n"
            "flip(probability=0.5, draw=each_pass)\n"
            "  -> image uint8 (32, 32, 3), channels last\n"
            "batch(global_batch=2, drop_remainder=false)\n"
            "prefetch(batches=3)\n");
}

TEST(Dataset, CountsOnTheSizeThatImagesAreSaidToHave) {
  const Dataset dataset = Dataset::from(encoded()).decode({.height = 24, .width = 30}).batch({.global_batch = 2});
  EXPECT_EQ(dataset.fields()[0].shape, (Shape{24, 30, 3}));
  EXPECT_THAT(dataset.explain(), HasSubstr("decode(24 x 30)\n"));
  EXPECT_NE(dataset.fingerprint(),
            Dataset::from(encoded()).decode({.height = 30, .width = 24}).batch({.global_batch = 2}).fingerprint());
}

TEST(Dataset, CountsRecordsAndSteps) {
  const Dataset all = Dataset::from(numbers(100)).skip(10).shard(3, 1).repeat(2);
  EXPECT_EQ(all.size(), 60U);
  EXPECT_EQ(all.batch({.global_batch = 7}).steps_per_epoch(), 9U);
  EXPECT_EQ(all.batch({.global_batch = 7, .drop_remainder = true}).steps_per_epoch(), 8U);
  EXPECT_THROW(all.steps_per_epoch(), ConfigError);
}

TEST(Dataset, IsImmutable) {
  const Dataset base = Dataset::from(numbers(10));
  const Dataset taken = base.take(3);
  EXPECT_EQ(base.size(), 10U);
  EXPECT_EQ(taken.size(), 3U);
}

TEST(Dataset, FingerprintsWhatTheStreamDependsOn) {
  const Dataset base = Dataset::from(noise_images(10, 8, 8));
  const auto of = [](const Dataset& dataset) { return dataset.batch({.global_batch = 4}).fingerprint(); };
  const std::uint64_t plain = of(base);
  EXPECT_EQ(of(base.cache(memory())), plain);
  EXPECT_EQ(base.batch({.global_batch = 4}).prefetch(9).fingerprint(), plain);
  EXPECT_NE(base.batch({.global_batch = 5}).fingerprint(), plain);
  EXPECT_NE(of(base.shuffle()), plain);
  EXPECT_NE(of(base.map(flip())), plain);
  EXPECT_NE(of(base.map(flip(0.25F))), of(base.map(flip())));
  EXPECT_NE(of(Dataset::from(noise_images(11, 8, 8))), plain);
  UserMap map{.name = "f", .output = {.dtype = DType::kU8, .shape = {1}}, .function = [](auto&&...) {}};
  const std::uint64_t first = of(base.map(user_map(map)));
  map.version = 2;
  EXPECT_NE(of(base.map(user_map(map))), first);
}

TEST(Dataset, RefusesPlansThatMakeNoSense) {
  const Dataset images = Dataset::from(noise_images(10, 8, 8));
  EXPECT_THAT(refusal_of_plan(images.decode()), HasSubstr("no field is an encoded image"));
  EXPECT_THAT(refusal_of_plan(images.map(flip()).cache(memory())), HasSubstr("flip(probability=0.5"));
  const auto cache = memory();
  EXPECT_THAT(refusal_of_plan(images.cache(cache).cache(cache)), HasSubstr("one cache stands at two places"));
  EXPECT_THAT(refusal_of_plan(images.batch({.global_batch = 2}).batch({.global_batch = 2})),
              HasSubstr("a batch of batches"));
  EXPECT_THAT(refusal_of_plan(images.batch({.global_batch = 2}).filter(with_labels({1}))),
              HasSubstr("single records"));
  EXPECT_THAT(refusal_of_plan(images.prefetch(2)), HasSubstr("prefetch"));
  EXPECT_THAT(refusal_of_plan(Dataset::from(numbers(3)).map(flip())), HasSubstr("image"));
  EXPECT_THAT(refusal_of_plan(Dataset::from(encoded()).batch({.global_batch = 2})), HasSubstr("still encoded"));
  EXPECT_THAT(refusal_of_plan(Dataset::from(encoded()).decode().batch({.global_batch = 2})),
              HasSubstr("differs from record"));
  EXPECT_THAT(refusal_of_plan(Dataset::from(encoded()).map(flip())), HasSubstr("call decode()"));
  EXPECT_EQ(refusal_of_plan(images.map(flip())), "");
  EXPECT_THROW(Dataset::from(nullptr), ConfigError);
  EXPECT_THROW(Dataset::from(encoded()).decode({.height = 3}), ConfigError);
  EXPECT_THROW(Dataset::from(encoded()).decode({.height = 3, .width = -1}), ConfigError);
  EXPECT_THROW(images.repeat(0), ConfigError);
  EXPECT_THROW(images.shard(2, 2), ConfigError);
  EXPECT_THROW(images.shard(0, 0), ConfigError);
  EXPECT_THROW(images.batch({.global_batch = 0}), ConfigError);
  EXPECT_THROW(images.batch({.global_batch = 1}).prefetch(-1), ConfigError);
  EXPECT_THROW(images.cache(nullptr), ConfigError);
}

}  // namespace
}  // namespace headrace::test
