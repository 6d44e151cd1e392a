// Sums the replicas' gradients in buckets as the backward pass fills them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/collective.h"
#include "headrace/train/replica_streams.h"

namespace HEADRACE_API headrace {

struct ReducerOptions {
  std::int64_t bucket_bytes = std::int64_t{8} << 20;
  // Of replicas that sum, or that update, beside the backward pass: the last bucket is what nothing hides.
  std::int64_t bucket_bytes_apart = std::int64_t{2} << 20;
};

// Elements [begin, end) of an arena.
struct ArenaSlice {
  std::int64_t begin = 0, end = 0;
};

// Gradients lie in one arena in the order in which the backward pass finishes them, so that a bucket is a slice:
// no copies. One object for all local replicas; each makes the same calls: filled() as often as it likes,
// finish(), join(). In a world of one nothing is sent. `wanted` are the slices that are summed, in ascending order
// without overlap, the same in all calls up to join(); what lies between them is what nobody updates, and stays
// each replica's own. Gradients are final in the order of the compute stream and that of the weights together.
// Where sums are apart, the communication stream waits for a bucket's gradients and sums it beside what the others
// do next; the calls then belong into one capture of the compute stream.
class Reducer {
 public:
  Reducer(Collective& collective, std::int64_t elements, const ReducerOptions& options = {});

  // The arena's elements [0, filled) are final on this replica: sends the buckets that are now full. Returns n:
  // in the order of the compute stream and that of the weights together, the wanted ones of the elements [0, n)
  // are sums over the world's replicas from here on.
  std::int64_t filled(int replica, const TensorView& arena, std::int64_t filled,
                      std::span<const ArenaSlice> wanted, const ReplicaStreams& streams);
  // Sends the rest. Returns n as filled() does: where sums are apart, all that was sent before.
  std::int64_t finish(int replica, const TensorView& arena, std::span<const ArenaSlice> wanted,
                      const ReplicaStreams& streams);
  // From here on the whole arena is, in the order of the compute stream alone, and whatever the communication
  // stream was given is done. The next call starts again.
  void join(int replica, const ReplicaStreams& streams);

 private:
  void send(int replica, const TensorView& arena, std::int64_t end, std::span<const ArenaSlice> wanted,
            const ReplicaStreams& streams);

  Collective* collective_;
  std::int64_t elements_;
  std::int64_t bucket_, bucket_apart_;  // elements
  std::vector<std::int64_t> sent_;      // of each local replica
};

}  // namespace headrace
