// Sums and copies over the replicas of a group, in stream order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "headrace/devices/base/api.h"
#include "headrace/devices/device_group.h"
#include "headrace/devices/tensor.h"

namespace HEADRACE_API headrace {

// Every replica must make the same calls in the same order, each on its own stream; calls may be captured.
// Different replicas may call concurrently. The result bits depend on the world's size and the data, never on
// timing. Sums are over the replicas of the world; `replica` is a zero-based index among those of this process.
class Collective {
 public:
  virtual ~Collective() = default;

  virtual int local_replicas() const noexcept = 0;  // in this process
  // The number of replicas in all processes, and how many of them precede this process's. A collective within one
  // process has no others.
  virtual int world_replicas() const noexcept { return local_replicas(); }
  virtual int first_replica() const noexcept { return 0; }

  // Returns whether calls may be made on a separate stream, beside the replica's other work.
  virtual bool runs_beside() const noexcept { return true; }

  // Returns a collective of the same group whose all_reduce_sum() always adds as the tree: a slower one with its
  // own scratch memory if NCCL's order is the fast one, else this collective. This collective owns it, and abort()
  // of either cancels both. The first call may wait for the devices. REQUIRES: one thread; no replica waits for
  // another, and the first call precedes any capture.
  virtual Collective& in_order() { return *this; }

  // Replaces every replica's `tensor` (f32) by the sum over replicas, the same bits on every replica: added as one
  // fixed pairwise tree ((0+1)+(2+3))+..., except among distinct GPUs, where NCCL chooses the order (in_order()).
  virtual void all_reduce_sum(int replica, const TensorView& tensor, Stream& stream) = 0;
  // Replaces every replica's `tensor` by a copy of the root's, bit for bit. `root`: a replica of the world.
  virtual void broadcast(int replica, int root, const TensorView& tensor, Stream& stream) = 0;

  // Returns how long the replica's stream has waited for the others in these calls since the collective was made;
  // 0 if unknown, as on GPUs. The others wait for the replica that has waited the shortest.
  virtual std::int64_t waited_ns(int /*replica*/) const noexcept { return 0; }

  // Returns null if failures of calls are the stream's (Stream::failure_word()). On GPUs a word of pinned memory:
  // not 0 once a call of the replica has failed or the group was aborted, until a stream of it reports that. A
  // copy of it in stream order tells whether the calls before the copy have valid results.
  virtual const std::uint32_t* failure_word(int /*replica*/) const noexcept { return nullptr; }

  // Releases every replica that waits in a collective, now or later, with DeviceError(kCancelled). A failed
  // replica calls it so that the others do not wait forever.
  virtual void abort(const std::string& reason) noexcept = 0;
};

// Creates a collective with the backend that opened the devices. Throws ConfigError if they are of several kinds.
std::unique_ptr<Collective> create_collective(DeviceGroup& devices);

}  // namespace headrace
