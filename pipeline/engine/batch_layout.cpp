#include "headrace/pipeline/engine/batch_layout.h"

#include <algorithm>

namespace headrace {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

BatchLayout::BatchLayout(const Fields& fields, std::int64_t global, int replica_count,
                         std::span<const std::size_t> apart)
    : replicas(replica_count), local_rows((global + replica_count - 1) / replica_count) {
  for (const std::size_t index : apart) add(fields[index], index);
  sent_from = buffer_bytes;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (std::ranges::find(apart, i) == apart.end()) add(fields[i], i);
  }
}

void BatchLayout::add(const Field& field, std::size_t index) {
  row_bytes[index] = static_cast<std::size_t>(field.shape.elements()) * size_of(field.dtype);
  sample_bytes += row_bytes[index];
  offset[index] = buffer_bytes;
  const std::size_t bytes = row_bytes[index] * static_cast<std::size_t>(local_rows);
  buffer_bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace headrace
