#include "headrace/pipeline/engine/batch_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/sizes.h"
#include "headrace/pipeline/engine/claim_counter.h"

namespace headrace {
namespace {

// Maximum bytes of a batch over all replicas. No machine has as much, and everything derived from it fits 64 bits:
// four such fields, their conversion to floats, a ring of them.
constexpr std::uint64_t kMaxBatchBytes = std::uint64_t{1} << 50;

void check_batch(const Fields& fields, std::int64_t examples) {
  std::uint64_t row = 0;
  for (const Field& field : fields) {
    row = std::max<std::uint64_t>(row, static_cast<std::uint64_t>(field.shape.elements()) * size_of(field.dtype));
  }
  const auto bytes = checked_product({row, static_cast<std::uint64_t>(examples)});
  const bool countable = examples <= ClaimCounter::kMaxCount;
  if (bytes && *bytes <= kMaxBatchBytes && countable) return;
  throw ConfigError(
      fmt::format("a batch of {} examples of {} bytes each is more than any machine holds", examples, row),
      "make the global batch smaller");
}

}  // namespace

BatchLayout::BatchLayout(const Fields& fields, std::int64_t examples, const ReplicaRange& range,
                         std::span<const std::size_t> apart, std::span<const RaggedTensor> ragged)
    : local_replicas(range.local),
      first_replica(range.first),
      world_replicas(range.world),
      local_rows(examples / range.world + (examples % range.world != 0)) {
  check_batch(fields, examples);
  for (const std::size_t index : apart) add(fields[index], index, local_rows);
  sent_from = buffer_bytes;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const bool counts = std::ranges::find(ragged, i, &RaggedTensor::offsets) != ragged.end();
    if (std::ranges::find(apart, i) == apart.end()) add(fields[i], i, counts ? local_rows + 1 : local_rows);
  }
}

void BatchLayout::add(const Field& field, std::size_t index, std::int64_t rows) {
  row_bytes[index] = static_cast<std::size_t>(field.shape.elements()) * size_of(field.dtype);
  sample_bytes += row_bytes[index];
  offset[index] = buffer_bytes;
  const std::size_t bytes = row_bytes[index] * static_cast<std::size_t>(rows);
  buffer_bytes += aligned(bytes);
  guest_bytes += aligned(row_bytes[index]);
}

}  // namespace headrace
