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
// Thread-safe over replicas. The result bits depend on the world's size and the data, never on timing. The
// replicas that sum are those of the world; `replica` is one of this process's, counted from 0.
class Collective {
 public:
  virtual ~Collective() = default;

  virtual int local_replicas() const noexcept = 0;  // of this process, which call
  // All that take part, in every process, and how many of them come before this process's. A collective within one
  // process has no others.
  virtual int world_replicas() const noexcept { return local_replicas(); }
  virtual int first_replica() const noexcept { return 0; }

  // Whether calls may come from a stream of their own, beside the replica's other work.
  virtual bool runs_beside() const noexcept { return true; }

  // The same group, whose all_reduce_sum() adds as the tree whatever the replicas are: a slower one where NCCL's
  // order is the fast one, with scratch memory of its own; else the group itself. It belongs to the group, and
  // abort() of either calls off both. The first call may wait for the devices: it comes before work is captured,
  // while no replica waits for another. One thread.
  virtual Collective& in_order() { return *this; }

  // Every replica's `tensor` (f32) becomes the sum over replicas, the same bits on every replica: added as one
  // fixed pairwise tree ((0+1)+(2+3))+..., except among distinct GPUs, where NCCL chooses the order (in_order()).
  virtual void all_reduce_sum(int replica, const TensorView& tensor, Stream& stream) = 0;
  // Every replica's `tensor` becomes a copy of the root's, bit for bit. `root`: a replica of the world.
  virtual void broadcast(int replica, int root, const TensorView& tensor, Stream& stream) = 0;

  // How long the replica's stream has waited for the others within these calls, since the collective was made; 0
  // where that is not known, as on GPUs. The replica that waits least is the one that the others wait for.
  virtual std::int64_t waited_ns(int /*replica*/) const noexcept { return 0; }

  // Releases every replica that waits in a collective, now and later, with DeviceError(kCancelled).
  // For a replica that failed, so that the others do not wait for it for ever.
  virtual void abort(const std::string& reason) noexcept = 0;
};

// The collective of the backend that opened the devices. Throws ConfigError when they are of several kinds.
std::unique_ptr<Collective> create_collective(DeviceGroup& devices);

}  // namespace headrace
