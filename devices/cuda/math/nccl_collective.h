// Sums and copies among GPUs, through NCCL. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "headrace/devices/collective.h"
#include "headrace/devices/cuda/cuda_stream.h"
#include "headrace/devices/cuda/math/nccl_communicator.h"
#include "headrace/devices/workers.h"

namespace headrace {

class CudaStream;

// One replica per GPU, of this process or of all workers. NCCL promises equal values on all replicas, but chooses
// its own order of additions: the bits are not those of the pairwise tree, and may depend on the GPUs and their
// connections. in_order() only sends through NCCL and does the additions itself (NcclTreeCollective). A call
// that NCCL has not submitted, or a group of one process that has not started, after HEADRACE_COLLECTIVE_TIMEOUT
// seconds (30) fails with DeviceError(kTimeout); workers may take WorkerOptions::start_timeout_seconds to connect.
// Different calls by the replicas are not detected. A thread watches the group and aborts it when NCCL reports an
// error or another worker fails. abort() waits for no call in progress, and aborts the workers, too. The
// destructor waits for submitted work, at most the limit of a call. REQUIRES: captured work is destroyed first.
class NcclCollective final : public Collective {
 public:
  using Call = std::function<ncclResult_t(ncclComm_t, cudaStream_t)>;
  using CallOfReplica = std::function<ncclResult_t(int replica, ncclComm_t, cudaStream_t)>;

  // Blocks until the GPUs are connected, those of all `workers` unless that is null. Throws DeviceError, and
  // ConfigError if workers have other versions of NCCL, other numbers of GPUs, or one GPU twice.
  explicit NcclCollective(DeviceGroup& devices, std::shared_ptr<Workers> workers = nullptr);
  ~NcclCollective() override;

  int local_replicas() const noexcept override { return devices_.size(); }
  int world_replicas() const noexcept override { return (workers_ ? workers_->count() : 1) * devices_.size(); }
  int first_replica() const noexcept override { return (workers_ ? workers_->rank() : 0) * devices_.size(); }
  Collective& in_order() override;
  void all_reduce_sum(int replica, const TensorView& tensor, Stream& stream) override;
  void broadcast(int replica, int root, const TensorView& tensor, Stream& stream) override;
  const std::uint32_t* failure_word(int /*replica*/) const noexcept override { return aborted_word(); }
  void abort(const std::string& reason) noexcept override;

  // Submits one replica's call, which waits for no other on the host. Does nothing once the group is aborted.
  void submit(int replica, const char* name, Stream& stream, const Call& call);
  // Submits all replicas' calls at once, each on its own stream: they may wait for one another on the host.
  void submit_together(const char* name, const std::vector<std::unique_ptr<Stream>>& streams,
                       const CallOfReplica& call);
  // Throws DeviceError(kCancelled) if the group is aborted.
  void require_not_aborted() const;

 private:
  class Report;

  void require_fitting_workers();
  // Returns the id that all ranks of the group give to NCCL: the first worker's.
  ncclUniqueId agree_on_id();
  void connect();
  // Calls `use`, an error of which may be that of a worker: names that one, then.
  void blame(const std::function<void()>& use) const;
  CudaStream& stream_of(int replica, Stream& stream) const;
  // Returns why the group is aborted; empty if it is not.
  std::string reason() const;
  // Returns which worker failed, or what NCCL reports; empty if all is well.
  std::string failure() const;
  void watch(const std::stop_token& stop) noexcept;  // the body of watchdog_
  std::uint32_t* aborted_word() const noexcept { return reinterpret_cast<std::uint32_t*>(aborted_.data()); }

  DeviceGroup& devices_;
  const std::shared_ptr<Workers> workers_;
  Buffer aborted_;  // a pinned word: 1 before abort() ends NCCL's kernels, and from then on
  std::vector<std::shared_ptr<Report>> reports_;                  // one per replica
  std::vector<std::unique_ptr<NcclCommunicator>> communicators_;  // one per replica
  mutable std::mutex mutex_;
  std::string reason_;                // by mutex_
  std::unique_ptr<Collective> tree_;  // made by the first in_order()
  std::jthread watchdog_;             // last: ends before what it looks at
};

// Returned by NcclCollective::in_order(): NCCL carries slices between the GPUs, Kernels::sum_tree adds them
// (tree_sum.h). The bits are those of every other collective, whatever the GPUs and their connections. It sends as
// many bytes as a ring, in more and smaller messages.
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
  const std::uint32_t* failure_word(int replica) const noexcept override { return group_.failure_word(replica); }
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
