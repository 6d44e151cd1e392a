// Counters of a running loader; always on, read at any time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/cache/sample_cache.h"
#include "headrace/pipeline/stage_stats.h"

namespace headrace {

struct LoaderStats {
  std::uint64_t elapsed_ns = 0;      // since construction, or of the interval
  std::uint64_t batches = 0;         // handed out, over all replicas: global batches
  std::uint64_t examples = 0;        // handed out
  std::uint64_t bytes = 0;           // of batch data handed out
  std::uint64_t stall_ns = 0;        // consumers waiting in next(), the longest replica
  std::uint64_t read_ns = 0;         // readers in Source::read, summed over threads
  std::uint64_t decode_ns = 0;       // decoding, summed over threads
  std::uint64_t operate_ns = 0;      // operations and writing into the batch, summed over threads
  std::uint64_t first_batch_ns = 0;  // from construction to the first batch ready
  double ready_batches = 0;          // mean number of finished batches waiting when one was asked for
  std::uint64_t asked = 0;           // batches asked for, over all replicas
  double ready_share = 0;            // of the batches asked for: those that were finished by then
  int slots = 0;                     // batches that fit into the ring
  std::uint64_t memory_bytes = 0;    // charged to the memory budget: batches, working memory, records read ahead
  std::uint64_t pinned_bytes = 0;    // charged to the pinned budget
  std::uint64_t kept_records = 0;    // that the devices keep
  std::uint64_t kept_bytes = 0;      // of each device, for all that it will keep
  CacheCounters cache = {};
  std::uint64_t bad_records = 0;  // of the batches handed out: skipped, or others in their place
  // Of the batches handed out, where they were decoded for them: a cache that holds a sample knows nothing of its
  // file.
  std::uint64_t warned_records = 0;     // used, though their image is damaged in a way that changes no pixel
  std::uint64_t oriented_images = 0;    // records whose image's EXIF data say that it is stored another way up
  std::uint64_t read_retries = 0;       // reads that the system refused and that were tried again
  std::vector<StageStats> stages = {};  // in the order a record meets them; the consumer is last

  double examples_per_second() const noexcept;
  // What happened after `earlier`, an older reading of the same loader's. What is not counted up (slots, the time
  // to the first batch) stays as it is.
  LoaderStats since(const LoaderStats& earlier) const;
  // Error where records were bad in this time and not one example was good.
  void require_good() const;
  // One line: rate, bytes a second, input stall, batches ready, cache hits.
  std::string summary() const;
};

}  // namespace headrace
