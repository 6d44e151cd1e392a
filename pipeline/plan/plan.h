// A plan after push-down, as the engine runs it: index stages first, then decode and operations with a cache among
// them, then batches and the stages on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/pipeline/batch.h"
#include "headrace/pipeline/operations/machinery/sample_stage.h"
#include "headrace/pipeline/plan/combination.h"
#include "headrace/pipeline/plan/index/batch_rows.h"
#include "headrace/pipeline/plan/index/index_map.h"
#include "headrace/pipeline/plan/index/shuffle_windows.h"
#include "headrace/pipeline/plan/stage.h"
#include "headrace/pipeline/sources/sharded_source.h"

namespace headrace {

class LengthBuckets;
class RaggedBatch;

struct PlannedCache {
  std::shared_ptr<SampleCache> cache;
  std::size_t stages = 0;  // leading stages whose result it holds
};

// The name of a stage in messages, and a hash that tells it from others.
struct StageIdentity {
  std::string text;
  std::uint32_t hash = 0;
};

// shuffle_shards() of a stream of shards.
struct ShardShuffle {
  ShuffleShardsOptions options;
  ShuffleWindows windows;
};

// The plan after push-down.
struct StreamPlan {
  SourcePtr source;
  std::vector<StagePtr> index_stages;      // in the order written
  std::optional<ShardShuffle> shards;      // then the first of them gives windows their order
  std::vector<SampleStage> sample_stages;  // in the order written
  std::vector<PlannedCache> caches;        // in the order written
  std::vector<ProcessedPart> parts;        // of a combination, done before the sample stages; empty: none are
  bool zipped = false;                     // whether each sample has the fields of all those parts
  std::size_t operations = 0;              // those of the parts included
  std::size_t numbers = 0;                 // of enumerate() stages, those of combined parts included
  bool renumbered = false;                 // whether such a stage gives a record different numbers
  std::optional<BatchOptions> batch;       // of combined batches: of the largest
  std::string batching;                    // describes the stage that makes the batches
  std::shared_ptr<const Combination> combined_batches;  // whose batches they are; null: they are cut by `batch`
  std::shared_ptr<const LengthBuckets>
      buckets;  // of bucket_by_length(), whose largest batch `batch` is; else null
  std::shared_ptr<const RaggedBatch> ragged_batch;  // of ragged_batch(); else null
  std::vector<RaggedTensor> ragged;                 // its fields
  std::size_t bucket_place = 0;                     // of the numbers, that by which a position's bucket is found
  std::vector<StagePtr> batch_stages;               // index stages on the batches' numbers, in the order written
  std::vector<PlannedOperation> batch_operations;   // batch-level ones, in the order written
  int prefetch = 2;
  Fields fields;  // of a finished sample; after them those of the offsets of `ragged`

  // Returns the number of leading sample stages whose result the last cache holds.
  std::size_t cached_stages() const noexcept { return caches.empty() ? 0 : caches.back().stages; }
  // Returns whether records are as the source holds them.
  bool is_unprocessed() const noexcept { return sample_stages.empty() && caches.empty() && parts.empty(); }
  IndexMap index_map(std::uint64_t seed) const;
  // Returns the order of a stream's shards.
  ShardOrder shard_order(std::uint64_t seed) const;
  // Returns where the rows of the batches of `records` records stand. REQUIRES: `batch` is set, `buckets` is not.
  BatchRows batch_rows(std::uint64_t records) const;
  // Returns the index of the batches of `records` records: (epoch, step) -> (batch, pass). REQUIRES: `batch` is
  // set.
  IndexMap batch_index_map(std::uint64_t records, std::uint64_t seed) const;
  // Returns the number of batches, and of examples, of an epoch. Run filters that have not run yet.
  std::uint64_t steps_per_epoch() const;  // REQUIRES: `batch` is set
  std::uint64_t examples_per_epoch() const;
  // Return the identity of a cache's contents, and of the whole stream.
  std::uint64_t cache_fingerprint(const PlannedCache& planned) const;
  std::uint64_t fingerprint() const;
  // Returns the data's identity and that of each stage that the fingerprint covers.
  std::vector<StageIdentity> identities() const;
};

// `on_device`: indices of the sample stages to mark as the devices'.
std::string explain_plan(const StreamPlan& plan, const std::vector<std::size_t>& on_device = {});

}  // namespace headrace
