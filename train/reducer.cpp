#include "headrace/train/reducer.h"

#include <algorithm>

namespace headrace {
namespace {

std::int64_t elements_of(std::int64_t bytes) {
  return std::max<std::int64_t>(1, bytes / static_cast<std::int64_t>(sizeof(float)));
}

}  // namespace

Reducer::Reducer(Collective& collective, std::int64_t elements, const ReducerOptions& options)
    : collective_(&collective),
      elements_(elements),
      bucket_(elements_of(options.bucket_bytes)),
      bucket_apart_(elements_of(options.bucket_bytes_apart)),
      sent_(static_cast<std::size_t>(collective.size()), 0) {}

std::int64_t Reducer::filled(int replica, const TensorView& arena, std::int64_t filled,
                             const ReplicaStreams& streams) {
  const std::int64_t& sent = sent_.at(static_cast<std::size_t>(replica));
  const std::int64_t bucket = streams.apart() ? bucket_apart_ : bucket_;
  if (collective_->size() == 1 || filled - sent >= bucket) send(replica, arena, filled, streams);
  return streams.apart() ? 0 : sent;
}

std::int64_t Reducer::finish(int replica, const TensorView& arena, const ReplicaStreams& streams) {
  const std::int64_t before = sent_.at(static_cast<std::size_t>(replica));
  if (streams.apart() && before > 0) streams.compute.follow(streams.communication);
  send(replica, arena, elements_, streams);
  return streams.apart() ? before : elements_;
}

void Reducer::join(int replica, const ReplicaStreams& streams) {
  if (streams.apart()) streams.compute.follow(streams.communication);
  sent_.at(static_cast<std::size_t>(replica)) = 0;
}

void Reducer::send(int replica, const TensorView& arena, std::int64_t end, const ReplicaStreams& streams) {
  std::int64_t& begin = sent_.at(static_cast<std::size_t>(replica));
  if (collective_->size() > 1 && end > begin) {
    if (streams.apart()) streams.communication.follow(streams.compute);
    const TensorView bucket{arena.as<float>() + begin, Shape{end - begin}, DType::kF32};
    collective_->all_reduce_sum(replica, bucket, streams.communication);
  }
  begin = end;
}

}  // namespace headrace
