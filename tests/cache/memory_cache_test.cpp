#include "headrace/cache/memory_cache.h"
#include "headrace/tests/conformance/sample_cache_suite.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

struct MemoryCacheMaker {
  std::unique_ptr<SampleCache> make(std::uint64_t budget_bytes) {
    return std::make_unique<MemoryCache>(budget_bytes);
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Memory, SampleCacheSuite, MemoryCacheMaker);

TEST(MemoryCacheTest, StoredBytesStayWhereTheyAre) {
  MemoryCache cache;
  cache.bind(1, 1000);
  Bytes scratch;
  cache.insert(0, content(0));
  const auto* first = cache.find(0, scratch).data();
  for (std::uint64_t i = 1; i < 1000; ++i) cache.insert(i, content(i));
  EXPECT_EQ(cache.find(0, scratch).data(), first);
  EXPECT_TRUE(scratch.empty());
}

}  // namespace
}  // namespace headrace::test
