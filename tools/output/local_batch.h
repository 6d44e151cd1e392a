// The number of examples of a global batch that a replica gets.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/pipeline/dataset.h"

namespace headrace::tools {

struct LocalBatch {
  std::int64_t global_batch = 0;  // of a whole batch; at most those of the data
  int world_replicas = 1;         // replicas that share it
  std::int64_t min = 0, max = 0;  // examples of one of them

  // Returns "batch: 512 examples, 64 on each of 8 replicas".
  std::string describe() const;
};

LocalBatch local_batch(const Dataset& dataset, std::int64_t global, int world_replicas);

}  // namespace headrace::tools
