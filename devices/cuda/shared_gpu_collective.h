// Sums and copies among logical replicas on one GPU. Private to the CUDA backend.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "headrace/devices/collective.h"
#include "headrace/devices/cuda/cuda_stream.h"
#include "headrace/devices/cuda/rendezvous.h"

namespace headrace {

// The replicas' streams meet on the GPU, by counters in its memory: the host waits for nothing, and each replica's
// step may be a separate captured graph, launched one after the other. Then each stream sums its slice of the
// vector over all replicas, and they meet again. At most kMaxWaiting.
//
// While a replica waits, the others' work must be able to start: see rendezvous.h. The constructor measures it,
// and throws DeviceError(kUnsupported) if it cannot. A wait that still does not end times out after
// HEADRACE_COLLECTIVE_TIMEOUT seconds (30) with DeviceError(kTimeout), and the group is cancelled.
class SharedGpuCollective final : public Collective {
 public:
  explicit SharedGpuCollective(DeviceGroup& devices);
  ~SharedGpuCollective() override;

  int local_replicas() const noexcept override { return devices_.size(); }
  void all_reduce_sum(int replica, const TensorView& tensor, Stream& stream) override;
  void broadcast(int replica, int root, const TensorView& tensor, Stream& stream) override;
  // A graph with branches would need uncounted queues.
  bool runs_beside() const noexcept override { return false; }
  void abort(const std::string& reason) noexcept override;

 private:
  class Report;

  void check_side_by_side();
  void submit(int replica, const cuda::RendezvousCall& call, Stream& stream);
  std::string reason() const;

  DeviceGroup& devices_;
  Buffer state_;  // RendezvousState
  Buffer words_;  // RendezvousWords
  unsigned long long patience_ns_;
  std::vector<std::shared_ptr<Report>> reports_;  // one per replica
  mutable std::mutex mutex_;
  std::string reason_;  // by mutex_; the host's
};

}  // namespace headrace
