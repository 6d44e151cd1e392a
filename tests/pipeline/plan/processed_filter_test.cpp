// filter() of what the stages before it leave.
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/streams.h"

namespace headrace::test {
namespace {

RecordFilter higher_than(std::int64_t rows) {
  return {.name = "higher than " + std::to_string(rows),
          .keeps = [rows](const ExampleView& record) { return record.shape("image")[0] > rows; },
          .processed = true};
}

TEST(ProcessedFilter, SeesDecodedImages) {
  const Dataset decoded = Dataset::from(fake_jpegs(20)).decode();  // of 24 to 28 rows by turns
  EXPECT_EQ(decoded.filter(higher_than(26)).size(), 8U);
  EXPECT_EQ(decoded.filter(higher_than(28)).size(), 0U);
  EXPECT_EQ(decoded.map(center_crop(16)).filter(higher_than(15)).size(), 20U) << "what the crop leaves";
  EXPECT_EQ(decoded.map(center_crop(16)).filter(higher_than(16)).size(), 0U);
}

TEST(ProcessedFilter, SeesValuesAndFieldsThatOperationsMade) {
  const UserOperation brightest{.name = "brightest",
                                .outputs = {{.name = "brightest", .dtype = DType::kU8, .shape = {}}},
                                .function = [](UserSample& sample) {
                                  std::byte most{};
                                  for (const std::byte each : sample.bytes(0)) most = std::max(most, each);
                                  sample.put(0, {&most, 1});
                                }};
  const RecordFilter bright{.name = "bright",
                            .keeps = [](const ExampleView& record) { return record.integer("brightest") > 250; },
                            .processed = true};
  const auto source = noise_images(40, 5, 5);
  const Dataset made = Dataset::from(source).map(user_operation(brightest));
  std::uint64_t expected = 0;
  std::vector<std::byte> scratch;
  for (std::uint64_t i = 0; i < 40; ++i) {
    const auto bytes = source->read(i, scratch).fields[0];
    expected += *std::max_element(bytes.begin(), bytes.end()) > std::byte{250} ? 1 : 0;
  }
  ASSERT_GT(expected, 0U);
  ASSERT_LT(expected, 40U);
  EXPECT_EQ(made.filter(bright).size(), expected);
}

TEST(ProcessedFilter, WhatCannotBeDecodedStaysAsABadRecord) {
  std::vector<std::vector<std::byte>> images;
  for (int i = 0; i < 6; ++i) images.push_back(encode_jpeg(make_picture(24 + i, 24, 3, 1)));
  images[2].resize(40);
  const Dataset kept = Dataset::from(std::make_shared<FakeSource>(images)).decode().filter(higher_than(26));
  EXPECT_EQ(kept.size(), 4U) << "three are higher, and one nobody knows";
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(kept.map(center_crop(8)).batch({.global_batch = 4}), devices);
  EXPECT_THROW(loader.next(), DataError);
}

TEST(ProcessedFilter, IsRefusedBehindRandomOperations) {
  const Dataset decoded = Dataset::from(fake_jpegs(4)).decode();
  EXPECT_THAT(error_of<ConfigError>([&] {
                decoded.map(random_resized_crop({.size = 8})).filter(higher_than(7)).size();
              }).what(),
              HasSubstr("random_resized_crop"));
}

TEST(ProcessedFilter, WhatItSeesIsPartOfTheIdentity) {
  const Dataset decoded = Dataset::from(fake_jpegs(6)).decode();
  const auto after = decoded.map(center_crop(16)).filter(higher_than(20)).map(resize(8) | center_crop(8));
  const auto before = decoded.filter(higher_than(20)).map(center_crop(16) | resize(8) | center_crop(8));
  EXPECT_NE(after.batch({}).fingerprint(), before.batch({}).fingerprint());
  EXPECT_THAT(before.explain(), HasSubstr("filter(higher than 20, version 1) of what decode() leaves"));
}

}  // namespace
}  // namespace headrace::test
