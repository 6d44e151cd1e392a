#include "headrace/pipeline/digest.h"
#include "headrace/tests/pipeline/streams.h"

namespace headrace::test {
namespace {

TEST(StreamDigest, HashesNamesTypesShapesAndRows) {
  DeviceGroup devices = test_devices(2);
  Loader loader(Dataset::from(numbers(5)).batch({.global_batch = 4}), devices);
  StreamDigest digest(devices);
  const auto first = digest.next(loader);
  const auto second = digest.next(loader);
  EXPECT_FALSE(digest.next(loader));

  Sha256 expected;
  const auto rows = [&](std::initializer_list<std::int64_t> values) {
    expected.update("value").update("int64").update("()");
    for (std::int64_t value : values) expected.update(std::as_bytes(std::span(&value, 1)));
    return expected.finish_hex();
  };
  EXPECT_EQ(*first, (BatchDigest{.epoch = 0, .step = 0, .examples = 4, .sha256 = rows({0, 1, 2, 3})}));
  EXPECT_EQ(*second, (BatchDigest{.epoch = 0, .step = 1, .examples = 1, .sha256 = rows({4})}));
  EXPECT_EQ(digest.finish(), expected.update(first->sha256).update(second->sha256).finish_hex());
}

}  // namespace
}  // namespace headrace::test
