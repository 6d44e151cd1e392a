// The batches of bucket_by_length().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/pipeline/plan/index/index_map.h"
#include "headrace/pipeline/plan/index/length_buckets.h"

namespace headrace {

// The batches of one pass, in the order in which their last examples arrive, then the smaller last ones, in that
// of the buckets.
struct BucketedPass {
  std::vector<std::uint32_t> positions;  // of the examples, batch after batch
  std::vector<std::uint64_t> ends;       // of each batch, among those
  std::vector<std::uint8_t> buckets;     // of each batch

  std::uint64_t first_of(std::uint64_t batch) const noexcept { return batch == 0 ? 0 : ends[batch - 1]; }
  std::uint64_t examples_of(std::uint64_t batch) const noexcept { return ends[batch] - first_of(batch); }
};

// Immutable and thread-safe.
class BucketBatches {
 public:
  // `positions` are those of an epoch; `place` is that of the number by which a position's bucket is found, among
  // `numbers`. Judges the records, unless that was done. Throws ConfigError if there are too many.
  BucketBatches(std::shared_ptr<const LengthBuckets> buckets, std::size_t place, std::size_t numbers,
                std::uint64_t positions);

  // Returns the number of batches of a pass, and of their examples.
  std::uint64_t count() const noexcept { return count_; }
  std::uint64_t examples() const noexcept { return examples_; }
  // Returns the examples of the bucket's largest batch; 0 if it has none.
  std::int64_t largest(std::size_t bucket) const noexcept { return largest_[bucket]; }
  std::size_t buckets() const noexcept { return largest_.size(); }
  // Returns the batches of a pass. O(positions). REQUIRES: `map` is the plan's.
  BucketedPass arrange(const IndexMap& map, std::uint64_t pass) const;

 private:
  std::shared_ptr<const LengthBuckets> buckets_;
  std::size_t place_, numbers_;
  std::uint64_t count_ = 0, examples_ = 0;
  std::vector<std::int64_t> largest_;
};

// Returns the examples of an epoch of such batches, of which `chosen` orders those of the positions of `map`;
// after a shuffle, of the first epoch.
std::uint64_t count_bucketed_examples(const BucketBatches& batches, const IndexMap& map, const IndexMap& chosen);

}  // namespace headrace
