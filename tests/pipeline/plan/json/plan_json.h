// What the tests of plans as JSON share.
#pragma once

#include "headrace/pipeline/dataset.h"
#include "headrace/tests/pipeline/streams.h"

namespace headrace::test {

// What a dataset is once it was written and read; its JSON must be the same then.
inline Dataset written_and_read(const Dataset& dataset, const PlanParts& parts = {}) {
  const std::string json = dataset.to_json(parts);
  Dataset read = Dataset::from_json(json, {.parts = parts});
  EXPECT_EQ(read.to_json(parts), json);
  return read;
}

// The same plan, to the stream's fingerprint; with batches, to their digests.
inline void expect_same_plan(const Dataset& dataset, const PlanParts& parts = {}) {
  SCOPED_TRACE(dataset.to_json(parts));
  const Dataset read = written_and_read(dataset, parts);
  EXPECT_EQ(read.fingerprint(), dataset.fingerprint());
  EXPECT_EQ(read.explain(), dataset.explain());
}

inline void expect_same_stream(const Dataset& dataset, const PlanParts& parts = {}) {
  expect_same_plan(dataset, parts);
  const LoaderOptions options{.seed = 5, .epochs = 2, .threads = 2};
  const auto digests = cpu_digests_of(dataset, options);
  EXPECT_FALSE(digests.empty());
  EXPECT_EQ(cpu_digests_of(written_and_read(dataset, parts), options), digests);
}

}  // namespace headrace::test
