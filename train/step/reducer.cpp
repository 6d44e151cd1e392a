#include "headrace/train/trainer.h"

#include <algorithm>

namespace headrace {
namespace {

std::int64_t elements_of(std::int64_t bytes) {
  return std::max<std::int64_t>(1, bytes / static_cast<std::int64_t>(sizeof(float)));
}

// Calls function(begin, end) for each wanted slice of the elements [begin, end).
template <typename Function>
void for_each_within(std::span<const ArenaSlice> wanted, std::int64_t begin, std::int64_t end,
                     const Function& function) {
  for (const ArenaSlice& slice : wanted) {
    const std::int64_t from = std::max(slice.begin, begin), to = std::min(slice.end, end);
    if (from < to) function(from, to);
  }
}

std::int64_t wanted_elements(std::span<const ArenaSlice> wanted, std::int64_t begin, std::int64_t end) {
  std::int64_t elements = 0;
  for_each_within(wanted, begin, end, [&](std::int64_t from, std::int64_t to) { elements += to - from; });
  return elements;
}

}  // namespace

Reducer::Reducer(Collective& collective, std::int64_t elements, const ReducerOptions& options)
    : collective_(&collective),
      elements_(elements),
      bucket_(elements_of(options.bucket_bytes)),
      bucket_apart_(elements_of(options.bucket_bytes_apart)),
      sent_(static_cast<std::size_t>(collective.local_replicas()), 0) {}

std::int64_t Reducer::filled(int replica, const TensorView& arena, std::int64_t filled,
                             std::span<const ArenaSlice> wanted, const ReplicaStreams& streams) {
  const std::int64_t& sent = sent_.at(static_cast<std::size_t>(replica));
  const bool beside = streams.sums_apart() || streams.updates_apart();
  const bool at_once = collective_->world_replicas() == 1 && !beside;
  if (at_once || wanted_elements(wanted, sent, filled) >= (beside ? bucket_apart_ : bucket_)) {
    send(replica, arena, filled, wanted, streams);
  }
  return streams.sums_apart() ? 0 : sent;
}

std::int64_t Reducer::finish(int replica, const TensorView& arena, std::span<const ArenaSlice> wanted,
                             const ReplicaStreams& streams) {
  const std::int64_t before = sent_.at(static_cast<std::size_t>(replica));
  if (streams.sums_apart() && before > 0) streams.compute.follow(streams.communication);
  send(replica, arena, elements_, wanted, streams);
  return streams.sums_apart() ? before : elements_;
}

void Reducer::join(int replica, const ReplicaStreams& streams) {
  streams.compute.follow(streams.weights);
  streams.compute.follow(streams.communication);
  sent_.at(static_cast<std::size_t>(replica)) = 0;
}

void Reducer::send(int replica, const TensorView& arena, std::int64_t end, std::span<const ArenaSlice> wanted,
                   const ReplicaStreams& streams) {
  std::int64_t& begin = sent_.at(static_cast<std::size_t>(replica));
  if (collective_->world_replicas() > 1 && wanted_elements(wanted, begin, end) > 0) {
    streams.communication.follow(streams.compute);
    streams.communication.follow(streams.weights);
    for_each_within(wanted, begin, end, [&](std::int64_t from, std::int64_t to) {
      const TensorView bucket{arena.as<float>() + from, Shape{to - from}, DType::kF32};
      collective_->all_reduce_sum(replica, bucket, streams.communication);
    });
  }
  begin = end;
}

}  // namespace headrace
