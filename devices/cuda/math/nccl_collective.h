// Sums and copies among GPUs, through NCCL. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "headrace/devices/collective.h"
#include "headrace/devices/cuda/cuda_stream.h"
#include "headrace/devices/cuda/math/nccl_communicator.h"

namespace headrace {

class CudaStream;

// One replica per GPU, all of this process. NCCL promises equal values on all replicas, but chooses its own order
// of additions: the bits are not those of the pairwise tree, and may depend on the GPUs and their connections.
// in_order() only sends through NCCL and does the additions itself (nccl_tree_collective.h). A call that NCCL has
// not submitted, or a group that has not started, after HEADRACE_COLLECTIVE_TIMEOUT seconds (30) fails with
// DeviceError(kTimeout). Different calls by the replicas are not detected. abort() waits for no call in progress.
// The destructor waits for submitted work, at most that long. REQUIRES: captured work is destroyed first.
class NcclCollective final : public Collective {
 public:
  using Call = std::function<ncclResult_t(ncclComm_t, cudaStream_t)>;
  using CallOfReplica = std::function<ncclResult_t(int replica, ncclComm_t, cudaStream_t)>;

  // Blocks until the GPUs are connected. Throws DeviceError.
  explicit NcclCollective(DeviceGroup& devices);
  ~NcclCollective() override;

  int local_replicas() const noexcept override { return devices_.size(); }
  Collective& in_order() override;
  void all_reduce_sum(int replica, const TensorView& tensor, Stream& stream) override;
  void broadcast(int replica, int root, const TensorView& tensor, Stream& stream) override;
  void abort(const std::string& reason) noexcept override;

  // Submits one replica's call, which waits for no other on the host. Does nothing once the group is aborted.
  void submit(int replica, const char* name, Stream& stream, const Call& call);
  // Submits all replicas' calls at once, each on its own stream: they may wait for one another on the host.
  void submit_together(const char* name, const std::vector<std::unique_ptr<Stream>>& streams,
                       const CallOfReplica& call);

 private:
  class Report;

  void connect();
  CudaStream& stream_of(int replica, Stream& stream) const;
  // Returns why the group is aborted; empty if it is not.
  std::string reason() const;

  DeviceGroup& devices_;
  std::vector<std::shared_ptr<Report>> reports_;                  // one per replica
  std::vector<std::unique_ptr<NcclCommunicator>> communicators_;  // one per replica
  mutable std::mutex mutex_;
  std::string reason_;                // by mutex_
  std::unique_ptr<Collective> tree_;  // made by the first in_order()
};

}  // namespace headrace
