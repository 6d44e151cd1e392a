#include "headrace/train/trainer.h"

#include <algorithm>

#include "headrace/devices/base/clock.h"

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

std::int64_t since(std::uint64_t begin) noexcept { return static_cast<std::int64_t>(now_ns() - begin); }

}  // namespace

Reducer::Reducer(Collective& collective, std::int64_t elements, const ReducerOptions& options)
    : collective_(&collective),
      elements_(elements),
      bucket_(elements_of(options.bucket_bytes)),
      bucket_apart_(elements_of(options.bucket_bytes_apart)),
      bucket_workers_(elements_of(options.bucket_bytes_workers)),
      sent_(static_cast<std::size_t>(collective.local_replicas()), 0),
      watches_(static_cast<std::size_t>(collective.local_replicas())) {}

std::int64_t Reducer::filled(int replica, const TensorView& arena, std::int64_t filled,
                             std::span<const ArenaSlice> wanted, const ReplicaStreams& streams) {
  const std::int64_t& sent = sent_.at(static_cast<std::size_t>(replica));
  const bool beside = streams.sums_apart() || streams.updates_apart();
  const bool at_once = collective_->world_replicas() == 1 && !beside;
  if (at_once || wanted_elements(wanted, sent, filled) >= bucket_size(streams)) {
    send(replica, arena, filled, wanted, streams);
  }
  return streams.sums_apart() ? 0 : sent;
}

std::int64_t Reducer::finish(int replica, const TensorView& arena, std::span<const ArenaSlice> wanted,
                             const ReplicaStreams& streams) {
  const std::int64_t before = sent_.at(static_cast<std::size_t>(replica));
  if (streams.sums_apart() && before > 0) wait_for_sums(replica, streams);
  send(replica, arena, elements_, wanted, streams);
  return streams.sums_apart() ? before : elements_;
}

void Reducer::join(int replica, const ReplicaStreams& streams) {
  streams.compute.follow(streams.weights);
  wait_for_sums(replica, streams);
  sent_.at(static_cast<std::size_t>(replica)) = 0;
}

void Reducer::wait_for_sums(int replica, const ReplicaStreams& streams) {
  Watch* const timed = watch(replica, streams);
  if (timed != nullptr) streams.compute.call([timed] { timed->waiting_since = now_ns(); });
  streams.compute.follow(streams.communication);
  if (timed != nullptr) streams.compute.call([timed] { timed->exposed_ns += since(timed->waiting_since); });
}

std::int64_t Reducer::bucket_size(const ReplicaStreams& streams) const {
  if (streams.sums_apart() && streams.compute.device().info().host_memory) return bucket_workers_;
  return streams.sums_apart() || streams.updates_apart() ? bucket_apart_ : bucket_;
}

Reducer::Watch* Reducer::watch(int replica, const ReplicaStreams& streams) {
  const bool measured = streams.sums_apart() && streams.compute.device().info().host_memory;
  return measured ? &watches_.at(static_cast<std::size_t>(replica)) : nullptr;
}

Reducer::Times Reducer::times(int replica) const noexcept {
  const Watch& watch = watches_[static_cast<std::size_t>(replica)];
  return {.sums_ns = watch.sums_ns, .exposed_ns = watch.exposed_ns};
}

void Reducer::send(int replica, const TensorView& arena, std::int64_t end, std::span<const ArenaSlice> wanted,
                   const ReplicaStreams& streams) {
  std::int64_t& begin = sent_.at(static_cast<std::size_t>(replica));
  if (collective_->world_replicas() > 1 && wanted_elements(wanted, begin, end) > 0) {
    streams.communication.follow(streams.compute);
    streams.communication.follow(streams.weights);
    Watch* const timed = watch(replica, streams);
    if (timed != nullptr) streams.communication.call([timed] { timed->summing_since = now_ns(); });
    for_each_within(wanted, begin, end, [&](std::int64_t from, std::int64_t to) {
      const TensorView bucket{arena.as<float>() + from, Shape{to - from}, DType::kF32};
      collective_->all_reduce_sum(replica, bucket, streams.communication);
    });
    if (timed != nullptr) streams.communication.call([timed] { timed->sums_ns += since(timed->summing_since); });
  }
  begin = end;
}

}  // namespace headrace
