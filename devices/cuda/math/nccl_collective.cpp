#include "headrace/devices/cuda/math/nccl_collective.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>

#include "headrace/devices/base/error.h"
#include "headrace/devices/cuda/collective_timeout.h"
#include "headrace/devices/cuda/cuda_check.h"
#include "headrace/devices/cuda/cuda_stream.h"
#include "headrace/devices/cuda/math/nccl_communicator.h"
#include "headrace/devices/cuda/math/nccl_tree_collective.h"

namespace headrace {

// Reports an aborted group to a replica that has used it.
class NcclCollective::Report final : public StreamReport {
 public:
  Report(const NcclCollective& owner, int replica) : owner_(owner), replica_(replica) {}

  void used() noexcept { owed_ = true; }
  std::exception_ptr take() noexcept override {
    const std::string reason = owner_.reason();
    if (reason.empty() || !owed_.exchange(false)) return nullptr;
    return std::make_exception_ptr(DeviceError(ErrorCode::kCancelled, "a collective was aborted: " + reason,
                                               owner_.devices_[replica_].info().name));
  }

 private:
  const NcclCollective& owner_;
  int replica_;
  std::atomic<bool> owed_{false};
};

NcclCollective::NcclCollective(DeviceGroup& devices) : devices_(devices) {
  const std::chrono::seconds patience = collective_timeout();
  for (int r = 0; r < devices.size(); ++r) {
    reports_.push_back(std::make_shared<Report>(*this, r));
    communicators_.push_back(std::make_unique<NcclCommunicator>(devices[r].info().name, patience));
  }
  // Makes all connections at the start: a call of one replica must never wait for another's on the host.
  setenv("NCCL_RUNTIME_CONNECT", "0", /*overwrite=*/0);
  try {
    connect();
  } catch (...) {
    NcclCommunicator::abort(communicators_);
    throw;
  }
}

NcclCollective::~NcclCollective() { NcclCommunicator::close(communicators_); }

void NcclCollective::connect() {
  const std::string& first = devices_[0].info().name;
  ncclUniqueId id{};
  NCCL_CHECK(ncclGetUniqueId(&id), first);
  NcclGroup together;
  for (int r = 0; r < local_replicas(); ++r) {
    const DeviceInfo& device = devices_[r].info();
    CUDA_CHECK(cudaSetDevice(device.ordinal), device.name);
    communicators_[static_cast<std::size_t>(r)]->init(local_replicas(), id, r);
  }
  NCCL_CHECK(together.end(), first);
  for (const auto& each : communicators_) each->await("connecting the GPUs");
}

Collective& NcclCollective::in_order() {
  if (!tree_) tree_ = std::make_unique<NcclTreeCollective>(*this, devices_);
  return *tree_;
}

void NcclCollective::all_reduce_sum(int replica, const TensorView& tensor, Stream& stream) {
  if (tensor.dtype != DType::kF32) {
    throw ConfigError(fmt::format("all_reduce_sum of {}: only float32 can be summed", to_string(tensor.dtype)));
  }
  submit(replica, "all-reduce", stream, [&](ncclComm_t communicator, cudaStream_t on) {
    return ncclAllReduce(tensor.data, tensor.data, static_cast<std::size_t>(tensor.elements()), ncclFloat32,
                         ncclSum, communicator, on);
  });
}

void NcclCollective::broadcast(int replica, int root, const TensorView& tensor, Stream& stream) {
  if (root < 0 || root >= local_replicas()) {
    throw ConfigError(fmt::format("broadcast from replica {} in a group of {}", root, local_replicas()));
  }
  submit(replica, "broadcast", stream, [&](ncclComm_t communicator, cudaStream_t on) {
    return ncclBroadcast(tensor.data, tensor.data, tensor.bytes(), ncclUint8, root, communicator, on);
  });
}

CudaStream& NcclCollective::stream_of(int replica, Stream& stream) const {
  auto* mine = dynamic_cast<CudaStream*>(&stream);
  if (mine == nullptr || &stream.device() != &devices_[replica]) {
    throw ConfigError(fmt::format("replica {}: the stream is of {}, not of {}", replica,
                                  stream.device().info().name, devices_[replica].info().name));
  }
  return *mine;
}

void NcclCollective::submit(int replica, const char* name, Stream& stream, const Call& call) {
  const DeviceInfo& device = devices_[replica].info();
  CudaStream& mine = stream_of(replica, stream);
  const auto& report = reports_[static_cast<std::size_t>(replica)];
  mine.listen_to(report);
  report->used();
  if (mine.skips()) return abort(device.name + " failed before this collective");
  CUDA_CHECK(cudaSetDevice(device.ordinal), device.name);
  communicators_[static_cast<std::size_t>(replica)]->submit(
      name, [&](ncclComm_t communicator) { return call(communicator, mine.handle()); });
}

void NcclCollective::submit_together(const char* name, const std::vector<std::unique_ptr<Stream>>& streams,
                                     const CallOfReplica& call) {
  std::deque<NcclCommunicator::Use> uses;  // until the group's end, which makes the calls
  NcclGroup together;
  ncclResult_t status = ncclSuccess;
  for (int r = 0; r < local_replicas() && !detail::failed(status); ++r) {
    const auto index = static_cast<std::size_t>(r);
    const DeviceInfo& device = devices_[r].info();
    CUDA_CHECK(cudaSetDevice(device.ordinal), device.name);
    const NcclCommunicator::Use& use = uses.emplace_back(*communicators_[index]);
    if (use.handle() != nullptr) status = call(r, use.handle(), stream_of(r, *streams[index]).handle());
  }
  status = together.end(status);
  uses.clear();
  for (const auto& each : communicators_) each->check(status, name);
  for (const auto& each : communicators_) each->await(name);
}

void NcclCollective::abort(const std::string& reason) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (reason_.empty()) reason_ = reason;
  }
  NcclCommunicator::abort(communicators_);
}

std::string NcclCollective::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

}  // namespace headrace
