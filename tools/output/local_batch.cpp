#include "headrace/tools/output/local_batch.h"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/devices/base/text.h"

namespace headrace::tools {

std::string LocalBatch::describe() const {
  std::string text = "batch: " + count_of(static_cast<std::uint64_t>(global_batch), "example");
  if (world_replicas == 1) return text;
  const std::string each =
      min == max ? with_commas(static_cast<std::uint64_t>(max)) : fmt::format("{} or {}", min, max);
  return text + fmt::format(", {} on each of {} replicas", each, world_replicas);
}

LocalBatch local_batch(const Dataset& dataset, std::int64_t global, int world_replicas) {
  const std::int64_t whole =
      dataset.streamed() ? global
                         : static_cast<std::int64_t>(std::min(static_cast<std::uint64_t>(global), dataset.size()));
  return {.global_batch = whole,
          .world_replicas = world_replicas,
          .min = whole / world_replicas,
          .max = whole / world_replicas + (whole % world_replicas != 0 ? 1 : 0)};
}

}  // namespace headrace::tools
