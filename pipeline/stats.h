// Counters of a running loader; always on, read at any time.
#pragma once

#include <cstdint>

#include "headrace/cache/sample_cache.h"

namespace headrace {

struct LoaderStats {
  std::uint64_t batches = 0;         // handed out, over all replicas: global batches
  std::uint64_t examples = 0;        // handed out
  std::uint64_t bytes = 0;           // of batch data handed out
  std::uint64_t stall_ns = 0;        // consumers waiting in next(), the longest replica
  std::uint64_t read_ns = 0;         // readers in Source::read, summed over threads
  std::uint64_t decode_ns = 0;       // decoding, summed over threads
  std::uint64_t operate_ns = 0;      // operations and writing into the batch, summed over threads
  std::uint64_t first_batch_ns = 0;  // from construction to the first batch ready
  double ready_batches = 0;          // mean number of finished batches waiting when one was asked for
  CacheCounters cache;
};

}  // namespace headrace
