#include "headrace/pipeline/plan/cached_sample.h"

#include <gtest/gtest.h>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

TEST(CachedSample, GivesBackWhatWasPutIn) {
  const std::vector<std::byte> pixels(100, std::byte{7});
  const std::vector<std::byte> label{std::byte{1}, std::byte{2}};
  std::vector<std::byte> sample;
  std::size_t used = append_field(sample, 0, {.bytes = pixels, .shape = {10, 5, 2}});
  used = append_field(sample, used, {.bytes = label, .shape = {}});
  used = append_field(sample, used, {.bytes = {}, .shape = {0}});

  CachedSampleReader reader(std::span<const std::byte>(sample.data(), used));
  const FieldView first = reader.next();
  EXPECT_EQ(first.shape, (Shape{10, 5, 2}));
  EXPECT_TRUE(std::equal(first.bytes.begin(), first.bytes.end(), pixels.begin(), pixels.end()));
  const FieldView second = reader.next();
  EXPECT_EQ(second.shape, Shape{});
  EXPECT_TRUE(std::equal(second.bytes.begin(), second.bytes.end(), label.begin(), label.end()));
  EXPECT_TRUE(reader.next().bytes.empty());
  EXPECT_THROW(reader.next(), Error);
}

}  // namespace
}  // namespace headrace
