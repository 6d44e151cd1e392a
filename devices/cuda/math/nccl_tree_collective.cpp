#include "headrace/devices/cuda/math/nccl_collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "headrace/devices/base/error.h"
#include "headrace/devices/cuda/math/nccl_communicator.h"
#include "headrace/devices/cuda/math/tree_sum.h"
#include "headrace/devices/kernels.h"

namespace headrace {
namespace {

// Large enough that messages between two of eight GPUs saturate their link, small compared to a model.
constexpr std::int64_t kScratchElements = std::int64_t{8} << 20;

using detail::failed;

// Makes one group call, so that no transfer waits for a later one.
ncclResult_t exchange(std::span<const cuda::Transfer> outgoing, std::span<const cuda::Transfer> incoming,
                      ncclComm_t communicator, cudaStream_t stream) {
  NcclGroup together;
  ncclResult_t status = ncclSuccess;
  for (const auto& [peer, data, elements] : outgoing) {
    if (failed(status)) break;
    status = ncclSend(data, static_cast<std::size_t>(elements), ncclFloat32, peer, communicator, stream);
  }
  for (const auto& [peer, data, elements] : incoming) {
    if (failed(status)) break;
    status = ncclRecv(data, static_cast<std::size_t>(elements), ncclFloat32, peer, communicator, stream);
  }
  return together.end(status);
}

}  // namespace

class NcclTreeCollective::Link {
 public:
  Link(NcclTreeCollective& owner, int replica, Stream& stream)
      : group_(owner.group_), kernels_(*owner.devices_[replica].kernels()), replica_(replica), stream_(stream) {}

  void exchange(std::span<const cuda::Transfer> outgoing, std::span<const cuda::Transfer> incoming) const {
    group_.submit(replica_, "exchange", stream_, [&](ncclComm_t communicator, cudaStream_t on) {
      return headrace::exchange(outgoing, incoming, communicator, on);
    });
  }
  void sum(std::span<const TensorView> parts, const TensorView& sum) const {
    kernels_.sum_tree(stream_, {parts, sum});
  }

 private:
  NcclCollective& group_;
  Kernels& kernels_;
  int replica_;
  Stream& stream_;
};

NcclTreeCollective::NcclTreeCollective(NcclCollective& group, DeviceGroup& devices)
    : group_(group), devices_(devices) {
  for (int r = 0; r < local_replicas(); ++r) {
    scratch_.push_back(devices[r].allocate(static_cast<std::size_t>(kScratchElements) * sizeof(float)));
  }
  connect();
}

TensorView NcclTreeCollective::scratch(int replica) const {
  return scratch_[static_cast<std::size_t>(replica)].view({kScratchElements}, DType::kF32);
}

// NCCL connects two GPUs when one first sends to the other, and waits on the host until both have asked for it; a
// kernel is loaded on its first launch, which may wait for the GPU. In a step either would wait forever, because
// one thread submits the replicas' parts one after another. So every GPU sends to every other here, messages as
// large as later ones, in one group call.
void NcclTreeCollective::connect() {
  constexpr std::int64_t kHalf = kScratchElements / 2;
  const std::int64_t message = kHalf / world_replicas();
  std::vector<std::unique_ptr<Stream>> streams;
  for (int r = 0; r < local_replicas(); ++r) {
    streams.push_back(devices_[r].create_stream());
    streams.back()->fill(scratch(r).data, 0, static_cast<std::size_t>(kHalf) * sizeof(float));
  }
  group_.submit_together(
      "connecting every pair of GPUs", streams, [&](int r, ncclComm_t communicator, cudaStream_t on) {
        auto* sent = scratch(r).as<float>();
        std::vector<cuda::Transfer> outgoing, incoming;
        for (int peer = 0; peer < world_replicas(); ++peer) {
          outgoing.push_back({.peer = peer, .data = sent + peer * message, .elements = message});
          incoming.push_back({.peer = peer, .data = sent + kHalf + peer * message, .elements = message});
        }
        return exchange(outgoing, incoming, communicator, on);
      });
  const std::size_t summed = std::min(static_cast<std::size_t>(world_replicas()), kernel::kMaxSummed);
  for (int r = 0; r < local_replicas(); ++r) {
    const TensorView one{scratch(r).as<float>(), Shape{1}, DType::kF32};
    const std::vector<TensorView> parts(summed, one);
    devices_[r].kernels()->sum_tree(*streams[static_cast<std::size_t>(r)], {parts, one});
  }
  for (const auto& stream : streams) stream->synchronize();
  group_.require_not_aborted();
}

void NcclTreeCollective::all_reduce_sum(int replica, const TensorView& tensor, Stream& stream) {
  if (tensor.dtype != DType::kF32) {
    throw ConfigError(fmt::format("all_reduce_sum of {}: only float32 can be summed", to_string(tensor.dtype)));
  }
  const Link link(*this, replica, stream);
  cuda::TreeSum(first_replica() + replica, world_replicas(), scratch(replica)).submit(tensor, link);
}

}  // namespace headrace
