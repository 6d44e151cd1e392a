// The buckets of bucket_by_length(): which lengths each has, and which records are in it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/filter_failures.h"
#include "headrace/pipeline/plan/scan/scan_once.h"

namespace headrace {

// The bucket of every record, by its length.
struct BucketScan {
  std::vector<std::uint8_t> buckets;  // of each position; 0 for those of `failures`
  std::vector<std::uint64_t> counts;  // positions of each bucket
  std::int64_t longest = 0;           // entries
  FilterFailures failures = {};       // records that could not be read
};

// Shared by all plans derived from one bucket_by_length(). Thread-safe.
class LengthBuckets {
 public:
  // `fields` are the names of those that are padded to the bucket's length, `judge` finds the buckets of all
  // records before the stage. Throws ConfigError if the options make no sense.
  LengthBuckets(BucketOptions options, std::vector<std::string> fields, std::function<BucketScan()> judge);

  const BucketOptions& options() const noexcept { return options_; }
  const std::vector<std::string>& fields() const noexcept { return fields_; }
  // Returns the number of buckets.
  std::size_t size() const noexcept { return options_.boundaries.size() + 1; }
  // Returns the examples of a full global batch of the bucket, and of the largest.
  std::int64_t batch_size(std::size_t bucket) const;
  std::int64_t largest_batch_size() const;
  // Returns the length to which the bucket's samples are padded. Like padded_length() and scan(), reads all
  // records the first time that it needs to, and throws as `judge` does; a later call then retries.
  std::int64_t length(std::size_t bucket) const;
  // Returns the length to which a record of this length is padded: less than its own if it is longer than allowed.
  std::int64_t padded_length(std::int64_t length) const;
  // Returns the bucket of each position among those of the index stages before the trailing shuffles and repeats.
  const BucketScan& scan() const;

 private:
  void check() const;

  BucketOptions options_;
  std::vector<std::string> fields_;
  std::function<BucketScan()> judge_;
  ScanOnce<BucketScan> scan_;
  mutable std::atomic<std::int64_t> longest_{-1};  // the scan's: each long record asks for it; -1: not known yet
};

}  // namespace headrace
