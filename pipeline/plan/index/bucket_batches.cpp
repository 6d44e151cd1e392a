#include "headrace/pipeline/plan/index/bucket_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"

namespace headrace {

BucketBatches::BucketBatches(std::shared_ptr<const LengthBuckets> buckets, std::size_t place, std::size_t numbers,
                             std::uint64_t positions)
    : buckets_(std::move(buckets)), place_(place), numbers_(numbers) {
  if (positions > std::numeric_limits<std::uint32_t>::max()) {
    throw ConfigError(fmt::format("{}: {} examples in an epoch are more than can be arranged",
                                  described("bucket_by_length", buckets_->options()), positions),
                      "repeat after bucket_by_length(), or ask the loader for more epochs");
  }
  const BucketScan& scan = buckets_->scan();
  const std::uint64_t repeats = scan.buckets.empty() ? 0 : positions / scan.buckets.size();
  for (std::size_t bucket = 0; bucket < buckets_->size(); ++bucket) {
    const auto size = static_cast<std::uint64_t>(buckets_->batch_size(bucket));
    const std::uint64_t all = scan.counts[bucket] * repeats, full = all / size, rest = all % size;
    const bool keeps_rest = rest > 0 && !buckets_->options().drop_remainder;
    count_ += full + (keeps_rest ? 1 : 0);
    examples_ += full * size + (keeps_rest ? rest : 0);
    largest_.push_back(static_cast<std::int64_t>(full > 0 ? size : keeps_rest ? rest : 0));
  }
}

BucketedPass BucketBatches::arrange(const IndexMap& map, std::uint64_t pass) const {
  const BucketScan& scan = buckets_->scan();
  BucketedPass made;
  made.positions.reserve(examples_);
  made.ends.reserve(count_);
  made.buckets.reserve(count_);
  std::vector<std::vector<std::uint32_t>> waiting(buckets_->size());
  const auto finish = [&](std::size_t bucket) {
    made.positions.insert(made.positions.end(), waiting[bucket].begin(), waiting[bucket].end());
    made.ends.push_back(made.positions.size());
    made.buckets.push_back(static_cast<std::uint8_t>(bucket));
    waiting[bucket].clear();
  };
  IndexCursor cursor(map);
  std::vector<std::uint64_t> numbers(numbers_);
  for (std::uint64_t position = 0; position < map.size(); ++position) {
    cursor.locate(pass, position);
    cursor.write_numbers(numbers.data());
    const std::size_t bucket = scan.buckets[numbers[place_]];
    waiting[bucket].push_back(static_cast<std::uint32_t>(position));
    if (waiting[bucket].size() == static_cast<std::size_t>(buckets_->batch_size(bucket))) finish(bucket);
  }
  for (std::size_t bucket = 0; bucket < waiting.size(); ++bucket) {
    if (!waiting[bucket].empty() && !buckets_->options().drop_remainder) finish(bucket);
  }
  return made;
}

std::uint64_t count_bucketed_examples(const BucketBatches& batches, const IndexMap& map, const IndexMap& chosen) {
  const IndexCursor cursor(chosen);
  std::map<std::uint64_t, BucketedPass> passes;
  std::uint64_t examples = 0;
  for (std::uint64_t step = 0; step < chosen.size(); ++step) {
    const Located batch = cursor.locate(0, step);
    auto pass = passes.find(batch.pass);
    if (pass == passes.end()) pass = passes.emplace(batch.pass, batches.arrange(map, batch.pass)).first;
    examples += pass->second.examples_of(batch.record);
  }
  return examples;
}

}  // namespace headrace
