#include "headrace/pipeline/loader.h"

#include <gtest/gtest.h>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/ledger.h"
#include "headrace/tests/pipeline/streams.h"

namespace headrace {
namespace {

using test::cpu_replicas;
using test::digests_of;
using test::noise_images;
using test::numbers;

Dataset augmented(const SourcePtr& source, std::int64_t global) {
  return Dataset::from(source)
      .shuffle({.seed = 7})
      .map(pad_crop(8, 2) | flip() | normalize({0.5F, 0.4F, 0.3F}, {0.2F, 0.3F, 0.4F}))
      .batch({.global = global})
      .prefetch(2);
}

TEST(Loader, GivesTheSameBitsForAnyThreadsReplicasAndPrefetch) {
  const Dataset dataset = augmented(noise_images(211, 8, 8), 48);
  const auto expected = digests_of(dataset, 1, {.seed = 5, .epochs = 2, .threads = 1, .prefetch = 0});
  ASSERT_EQ(expected.size(), 10U);
  for (int threads : {1, 2, 4}) {
    for (int replicas : {1, 2, 4, 8}) {
      for (int prefetch : {0, 1, 4}) {
        EXPECT_EQ(digests_of(dataset, replicas, {.seed = 5, .epochs = 2, .threads = threads, .prefetch = prefetch}),
                  expected)
            << threads << " threads, " << replicas << " replicas, prefetch " << prefetch;
      }
    }
  }
  EXPECT_NE(digests_of(dataset, 1, {.seed = 6, .epochs = 2, .threads = 1}), expected);
}

}  // namespace
}  // namespace headrace
