#include "headrace/devices/cuda/math/nccl_collective.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/cuda/cuda_check.h"
#include "headrace/devices/cuda/cuda_stream.h"
#include "headrace/devices/cuda/math/nccl_communicator.h"
#include "headrace/devices/cuda/settings.h"

namespace headrace {
namespace {

constexpr auto kWatched = std::chrono::milliseconds(50);
// How long an error of NCCL waits for the name of the worker that was lost.
constexpr auto kNamed = std::chrono::milliseconds(400);

NcclLimit limit_of_calls() {
  return {.time = collective_timeout(), .hint = "HEADRACE_COLLECTIVE_TIMEOUT sets the limit"};
}

NcclLimit limit_of_start(const Workers* workers) {
  if (workers == nullptr) return limit_of_calls();
  return {.time = std::chrono::milliseconds(
              static_cast<std::int64_t>(workers->options().start_timeout_seconds * 1000)),
          .hint = "the workers' start limit; NCCL_SOCKET_IFNAME names the network on which they meet"};
}

// Returns the same text for one GPU in every process.
std::string identity_of(const DeviceInfo& device) {
  cudaDeviceProp properties{};
  CUDA_CHECK(cudaGetDeviceProperties(&properties, device.ordinal), device.name);
  return {properties.uuid.bytes, sizeof properties.uuid.bytes};
}

std::string nccl_version() {
  int version = 0;
  return ncclGetVersion(&version) == ncclSuccess ? std::to_string(version) : "unknown";
}

}  // namespace

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

NcclCollective::NcclCollective(DeviceGroup& devices, std::shared_ptr<Workers> workers)
    : devices_(devices),
      workers_(std::move(workers)),
      aborted_(devices[0].allocate_pinned(sizeof(std::uint32_t))) {
  *aborted_word() = 0;
  for (int r = 0; r < devices.size(); ++r) {
    reports_.push_back(std::make_shared<Report>(*this, r));
    communicators_.push_back(std::make_unique<NcclCommunicator>(devices[r].info().name, limit_of_calls()));
  }
  // Makes all connections at the start: a call of one replica must never wait for another's on the host.
  setenv("NCCL_RUNTIME_CONNECT", "0", /*overwrite=*/0);
  // Registering a captured call's memory meets the other processes on the host, in the middle of their captures.
  if (workers_) setenv("NCCL_GRAPH_REGISTER", "0", /*overwrite=*/0);
  if (workers_) require_fitting_workers();
  try {
    connect();
  } catch (const std::exception& error) {
    abort(error.what());
    throw;
  }
}

NcclCollective::~NcclCollective() { NcclCommunicator::close(communicators_); }

void NcclCollective::require_fitting_workers() {
  workers_->require_equal("number of replicas", std::to_string(local_replicas()));
  workers_->require_equal("version of NCCL", nccl_version());
  std::map<std::string, int> worker_of;  // by GPU
  for (int r = 0; r < local_replicas(); ++r) {
    const std::vector<std::string> all = workers_->all_gather(identity_of(devices_[r].info()));
    for (int rank = 0; rank < workers_->count(); ++rank) {
      const auto [known, is_new] = worker_of.emplace(all[static_cast<std::size_t>(rank)], rank);
      if (is_new) continue;
      throw ConfigError(
          fmt::format("{} and {} would train on one GPU, and NCCL sums over different ones",
                      workers_->at(known->second).to_string(known->second), workers_->at(rank).to_string(rank)),
          "give each worker GPUs of its own, such as cuda:N to the worker of local rank N");
    }
  }
}

ncclUniqueId NcclCollective::agree_on_id() {
  ncclUniqueId id{};
  if (first_replica() == 0) NCCL_CHECK(ncclGetUniqueId(&id), devices_[0].info().name);
  if (!workers_) return id;
  const std::vector<std::string> all = workers_->all_gather({id.internal, sizeof id.internal});
  std::memcpy(id.internal, all.front().data(), sizeof id.internal);
  return id;
}

void NcclCollective::connect() {
  const std::string& first = devices_[0].info().name;
  const ncclUniqueId id = agree_on_id();
  NcclGroup together;
  for (int r = 0; r < local_replicas(); ++r) {
    const DeviceInfo& device = devices_[r].info();
    CUDA_CHECK(cudaSetDevice(device.ordinal), device.name);
    communicators_[static_cast<std::size_t>(r)]->init(world_replicas(), id, first_replica() + r);
  }
  NCCL_CHECK(together.end(), first);
  watchdog_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
  blame([&] {
    for (const auto& each : communicators_) each->await("connecting the GPUs", limit_of_start(workers_.get()));
  });
  require_not_aborted();
}

// A worker that is lost is named soon after its connections end.
void NcclCollective::blame(const std::function<void()>& use) const {
  try {
    use();
  } catch (const DeviceError& error) {
    if (!workers_ || error.code() != ErrorCode::kDevice) throw;
    std::this_thread::sleep_for(kNamed);
    const std::string failed = workers_->failure();
    if (failed.empty()) throw;
    throw DeviceError(ErrorCode::kCancelled, failed, error.device(), error.message());
  }
}

void NcclCollective::require_not_aborted() const {
  const std::string why = reason();
  if (!why.empty()) {
    throw DeviceError(ErrorCode::kCancelled, "a collective was aborted: " + why, devices_[0].info().name);
  }
}

std::string NcclCollective::failure() const {
  if (workers_) {
    if (std::string failed = workers_->failure(); !failed.empty()) return failed;
  }
  for (const auto& each : communicators_) {
    const std::string error = each->failure();
    if (error.empty()) continue;
    if (!workers_) return error;
    std::this_thread::sleep_for(kNamed);  // as in blame()
    const std::string failed = workers_->failure();
    return failed.empty() ? error : failed;
  }
  return {};
}

void NcclCollective::watch(const std::stop_token& stop) noexcept {
  try {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    while (!stopped.wait_for(lock, stop, kWatched, [&] { return stop.stop_requested(); })) {
      if (const std::string why = failure(); !why.empty()) return abort(why);
    }
  } catch (const std::exception& error) {
    abort(error.what());
  }
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
  if (root < 0 || root >= world_replicas()) {
    throw ConfigError(fmt::format("broadcast from replica {} in a group of {}", root, world_replicas()));
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
  blame([&] {
    communicators_[static_cast<std::size_t>(replica)]->submit(
        name, [&](ncclComm_t communicator) { return call(communicator, mine.handle()); });
  });
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
  blame([&] {
    for (const auto& each : communicators_) each->check(status, name);
    for (const auto& each : communicators_) each->await(name);
  });
}

void NcclCollective::abort(const std::string& reason) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (reason_.empty()) reason_ = reason;
  }
  std::atomic_ref(*aborted_word()).store(1);
  if (workers_) workers_->abort(reason);  // at once; what follows may take a while
  NcclCommunicator::abort(communicators_);
}

std::string NcclCollective::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

}  // namespace headrace
