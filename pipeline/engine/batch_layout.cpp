#include "headrace/pipeline/engine/batch_layout.h"

namespace headrace {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

BatchLayout::BatchLayout(const Fields& fields, std::int64_t global, int replica_count)
    : replicas(replica_count), local_rows((global + replica_count - 1) / replica_count) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    row_bytes[i] = static_cast<std::size_t>(fields[i].shape.elements()) * size_of(fields[i].dtype);
    sample_bytes += row_bytes[i];
    offset[i] = buffer_bytes;
    const std::size_t bytes = row_bytes[i] * static_cast<std::size_t>(local_rows);
    buffer_bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
}

}  // namespace headrace
