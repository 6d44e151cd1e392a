// Sums among GPUs in the order of the pairwise tree. Private to the CUDA backend.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "headrace/devices/collective.h"
#include "headrace/devices/cuda/math/nccl_collective.h"

namespace headrace {

// NcclCollective::in_order(): NCCL carries slices between the GPUs, Kernels::sum_tree adds them (tree_sum.h). The
// bits are those of every other collective, whatever the GPUs and their connections. It sends as many bytes as a
// ring, in more and smaller messages.
class NcclTreeCollective final : public Collective {
 public:
  // Allocates scratch memory on each GPU, connects every pair of the world's and loads the kernels, waiting for
  // all. Throws DeviceError. All workers call it. REQUIRES: the group and its devices outlive it.
  NcclTreeCollective(NcclCollective& group, DeviceGroup& devices);

  int local_replicas() const noexcept override { return devices_.size(); }
  int world_replicas() const noexcept override { return group_.world_replicas(); }
  int first_replica() const noexcept override { return group_.first_replica(); }
  void all_reduce_sum(int replica, const TensorView& tensor, Stream& stream) override;
  void broadcast(int replica, int root, const TensorView& tensor, Stream& stream) override {
    group_.broadcast(replica, root, tensor, stream);
  }
  void abort(const std::string& reason) noexcept override { group_.abort(reason); }

 private:
  class Link;

  void connect();
  TensorView scratch(int replica) const;

  NcclCollective& group_;
  DeviceGroup& devices_;
  std::vector<Buffer> scratch_;  // one per replica, whose calls are ordered
};

}  // namespace headrace
