#include "headrace/pipeline/plan/index/length_buckets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

constexpr std::size_t kMaxBuckets = 256;

[[noreturn]] void refuse_buckets(const std::string& why, const std::string& hint = {}) {
  throw ConfigError("bucket_by_length(): " + why, hint);
}

}  // namespace

LengthBuckets::LengthBuckets(BucketOptions options, std::vector<std::string> fields,
                             std::function<BucketScan()> judge)
    : options_(std::move(options)), fields_(std::move(fields)), judge_(std::move(judge)) {
  check();
}

void LengthBuckets::check() const {
  const std::vector<std::int64_t>& ends = options_.boundaries;
  if (ends.empty()) refuse_buckets("no boundaries", "give the greatest length of each bucket but the last");
  if (size() > kMaxBuckets) refuse_buckets(fmt::format("{} buckets; {} are possible", size(), kMaxBuckets));
  if (ends.front() < 1 || std::ranges::adjacent_find(ends, std::greater_equal{}) != ends.end()) {
    refuse_buckets(fmt::format("the boundaries {} do not ascend from 1 or more", fmt::join(ends, ", ")));
  }
  if (options_.batch_sizes.size() != 1 && options_.batch_sizes.size() != size()) {
    refuse_buckets(fmt::format("{} batch sizes for {} buckets", options_.batch_sizes.size(), size()),
                   "give one for each bucket, of which there is one more than boundaries, or one for all");
  }
  for (const std::int64_t examples : options_.batch_sizes) {
    if (examples < 1) refuse_buckets(fmt::format("batches of {}: a batch holds at least one example", examples));
  }
  if (options_.max_length != 0 && options_.max_length <= ends.back()) {
    refuse_buckets(
        fmt::format("the maximum {} is not above the last boundary, {}", options_.max_length, ends.back()),
        "leave it out for that of the longest record");
  }
}

std::int64_t LengthBuckets::batch_size(std::size_t bucket) const {
  return options_.batch_sizes.size() == 1 ? options_.batch_sizes.front() : options_.batch_sizes[bucket];
}

std::int64_t LengthBuckets::largest_batch_size() const { return std::ranges::max(options_.batch_sizes); }

std::int64_t LengthBuckets::length(std::size_t bucket) const {
  if (bucket < options_.boundaries.size()) return options_.boundaries[bucket];
  if (options_.max_length > 0) return options_.max_length;
  const std::int64_t known = longest_.load(std::memory_order_relaxed);
  return std::max(known >= 0 ? known : scan().longest, options_.boundaries.back());
}

std::int64_t LengthBuckets::padded_length(std::int64_t length) const {
  const auto end = std::ranges::lower_bound(options_.boundaries, length);
  return end != options_.boundaries.end() ? *end : this->length(options_.boundaries.size());
}

const BucketScan& LengthBuckets::scan() const {
  const BucketScan& scan = scan_.get(judge_);
  longest_.store(scan.longest, std::memory_order_relaxed);
  return scan;
}

}  // namespace headrace
