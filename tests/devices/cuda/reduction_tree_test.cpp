#include <gtest/gtest.h>

#include <vector>

#include "headrace/devices/base/rng.h"
#include "headrace/devices/cpu/cpu_collective.h"
#include "headrace/devices/cuda/reduction_tree.h"

namespace headrace::cuda {
namespace {

TEST(ReductionTree, SlicesAreTheVectorOnceAndBeginOnLines) {
  for (int replicas = 1; replicas <= kMaxReplicas; ++replicas) {
    for (const std::int64_t elements : {0, 1, 15, 16, 17, 100, 1023, 1025, 100'003}) {
      std::int64_t end = 0;
      for (int r = 0; r < replicas; ++r) {
        const Slice slice = slice_of(elements, r, replicas);
        ASSERT_EQ(slice.begin, end) << r << " of " << replicas << ", " << elements;
        ASSERT_TRUE(slice.begin % 16 == 0 || slice.begin == elements);
        ASSERT_GE(slice.end, slice.begin);
        end = slice.end;
      }
      ASSERT_EQ(end, elements) << replicas;
    }
  }
}

TEST(ReductionTree, SlicesAreEquallyLongUpToALine) {
  for (int r = 0; r < 3; ++r) {
    const Slice slice = slice_of(1'000'000'000'000, r, 3);
    EXPECT_NEAR(static_cast<double>(slice.end - slice.begin), 1e12 / 3, 16) << "no overflow of 32 bits";
  }
}

TEST(ReductionTree, SumsHaveTheBitsOfTheCpusTree) {
  Philox random({.seed = 3, .epoch = 0, .record = 0, .operation = 0});
  for (int count = 1; count <= kMaxReplicas; ++count) {
    for (int round = 0; round < 20; ++round) {
      std::vector<float> values(static_cast<std::size_t>(count));
      for (float& value : values) {
        value = (random.uniform() - 0.5F) * static_cast<float>(1U << random.below(24));
      }
      std::vector<float> copies = values;
      std::vector<float*> vectors;
      for (float& copy : copies) vectors.push_back(&copy);
      sum_in_place(vectors, 1);
      const float sum = pairwise_sum(count, [&](int i) { return values[static_cast<std::size_t>(i)]; });
      ASSERT_EQ(sum, copies[0]) << count;
    }
  }
}

}  // namespace
}  // namespace headrace::cuda
