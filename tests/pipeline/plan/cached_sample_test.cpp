#include "headrace/pipeline/plan/cached_sample.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

struct Sample {
  std::vector<std::byte> pixels = std::vector<std::byte>(100, std::byte{7});
  std::vector<std::byte> label{std::byte{1}, std::byte{2}};
  std::vector<std::byte> bytes;

  explicit Sample(const Shape& image) {
    std::size_t used = append_field(bytes, 0, {.bytes = pixels, .shape = image});
    used = append_field(bytes, used, {.bytes = label, .shape = {}});
    used = append_field(bytes, used, {.bytes = {}, .shape = {0}});
    bytes.resize(used);
  }
};

void expect_sample(std::span<const FieldView> read, const Sample& sample, const Shape& image) {
  EXPECT_EQ(read[0].shape, image);
  EXPECT_TRUE(std::ranges::equal(read[0].bytes, sample.pixels));
  EXPECT_EQ(read[1].shape, Shape{});
  EXPECT_TRUE(std::ranges::equal(read[1].bytes, sample.label));
  EXPECT_EQ(read[2].shape, Shape{0});
  EXPECT_TRUE(read[2].bytes.empty());
}

TEST(CachedSample, GivesBackWhatWasPutIn) {
  const Sample sample({10, 5, 2});
  std::vector<FieldView> read(3);
  read_sample(sample.bytes, read);
  expect_sample(read, sample, {10, 5, 2});
}

TEST(CachedSample, OneThatEndsEarlyIsRefused) {
  const Sample sample({10, 5, 2});
  const std::span<const std::byte> early = std::span(sample.bytes).first(sample.bytes.size() - 64);
  std::vector<FieldView> read(3);
  EXPECT_THROW(read_sample(early, read), Error);
}

}  // namespace
}  // namespace headrace::test
