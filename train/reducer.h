// Sums the replicas' gradients in buckets as the backward pass fills them.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/devices/collective.h"

namespace headrace {

struct ReducerOptions {
  std::int64_t bucket_bytes = std::int64_t{8} << 20;
};

// Gradients lie in one arena in the order in which the backward pass finishes them, so that a bucket is a slice:
// no copies. One object for all replicas; each replica makes the same calls. With one replica nothing is sent.
class Reducer {
 public:
  Reducer(Collective& collective, std::int64_t elements, const ReducerOptions& options = {});

  // The arena's elements [0, filled) are final on this replica: sends the buckets that are now full. Returns n:
  // in stream order the elements [0, n) are sums over all replicas from here on.
  std::int64_t filled(int replica, const TensorView& arena, std::int64_t filled, Stream& stream);
  // Sends the rest. The next call starts anew.
  void finish(int replica, const TensorView& arena, Stream& stream);

 private:
  void send(int replica, const TensorView& arena, std::int64_t end, Stream& stream);

  Collective* collective_;
  std::int64_t elements_;
  std::int64_t bucket_;             // elements
  std::vector<std::int64_t> sent_;  // of each replica
};

}  // namespace headrace
