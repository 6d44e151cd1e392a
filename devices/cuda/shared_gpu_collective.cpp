#include "headrace/devices/cuda/cuda_backend.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/cuda/cuda_check.h"
#include "headrace/devices/cuda/cuda_stream.h"
#include "headrace/devices/cuda/settings.h"

namespace headrace {
namespace {

std::atomic_ref<std::uint32_t> word(std::uint32_t& in_pinned_memory) { return std::atomic_ref(in_pinned_memory); }

}  // namespace

// Reports the outcome that a replica's kernels have left in its word.
class SharedGpuCollective::Report final : public StreamReport {
 public:
  Report(const SharedGpuCollective& owner, int replica) : owner_(owner), replica_(replica) {}

  std::exception_ptr take() noexcept override {
    auto& words = *reinterpret_cast<cuda::RendezvousWords*>(owner_.words_.data());
    const auto outcome = static_cast<cuda::Outcome>(word(words.outcomes[replica_]).exchange(0));
    if (outcome == cuda::Outcome::kFine) return nullptr;
    const std::string& device = owner_.devices_[replica_].info().name;
    switch (outcome) {
      case cuda::Outcome::kDisagreed:
        return std::make_exception_ptr(DeviceError(ErrorCode::kInvalidArgument,
                                                   "the replicas disagree about a collective", device,
                                                   "all must make the same calls in the same order"));
      case cuda::Outcome::kTimedOut:
        return std::make_exception_ptr(DeviceError(
            ErrorCode::kTimeout, "a collective timed out: " + owner_.reason(), device,
            "every replica must make the call; HEADRACE_COLLECTIVE_TIMEOUT sets how many seconds that may take"));
      default:
        return std::make_exception_ptr(
            DeviceError(ErrorCode::kCancelled, "a collective was aborted: " + owner_.reason(), device));
    }
  }

 private:
  const SharedGpuCollective& owner_;
  int replica_;
};

SharedGpuCollective::SharedGpuCollective(DeviceGroup& devices)
    : devices_(devices),
      patience_ns_(static_cast<unsigned long long>(std::chrono::nanoseconds(collective_timeout()).count())) {
  if (devices.size() > cuda::kMaxWaiting) {
    throw DeviceError(ErrorCode::kUnsupported,
                      fmt::format("{} replicas share it, at most {} can", devices.size(), cuda::kMaxWaiting),
                      devices[0].info().name, "use fewer replicas, as in cuda:0x8");
  }
  state_ = devices[0].allocate(sizeof(cuda::RendezvousState));
  words_ = devices[0].allocate_pinned(sizeof(cuda::RendezvousWords));
  std::memset(words_.data(), 0, words_.size());
  const std::unique_ptr<Stream> stream = devices[0].create_stream();
  stream->fill(state_.data(), 0, state_.size());
  stream->synchronize();
  CUDA_CHECK(cuda::load_rendezvous_kernels(), devices[0].info().name);
  for (int r = 0; r < devices.size(); ++r) reports_.push_back(std::make_shared<Report>(*this, r));
  if (devices.size() == 1) return;
  check_side_by_side();
  meeting_.emplace(SharedGpu::of(devices[0].info().ordinal, devices[0].info().name));
}

// As many kernels wait for one another as the replicas will have streams, launched one after the other: one that
// is queued after another never starts.
void SharedGpuCollective::check_side_by_side() {
  constexpr std::chrono::nanoseconds kPatience = std::chrono::seconds(2);
  Device& device = devices_[0];
  const int count = cuda::kStreamsPerReplica * local_replicas();
  const Buffer state = device.allocate(sizeof(cuda::RendezvousState));
  const Buffer words = device.allocate_pinned(sizeof(cuda::RendezvousWords));
  std::memset(words.data(), 0, words.size());
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < count; ++i) streams.push_back(device.create_stream());
  streams.front()->fill(state.data(), 0, state.size());
  streams.front()->synchronize();
  auto& shared = *reinterpret_cast<cuda::RendezvousWords*>(words.data());
  for (int i = 0; i < count; ++i) {
    const auto& stream = dynamic_cast<const CudaStream&>(*streams[static_cast<std::size_t>(i)]);
    const cuda::Rendezvous all{.state = reinterpret_cast<cuda::RendezvousState*>(state.data()),
                               .words = &shared,
                               .replica = i,
                               .local_replicas = count,
                               .stream_failed = stream.failure_word(),
                               .patience_ns = static_cast<unsigned long long>(kPatience.count())};
    CUDA_CHECK(cuda::meet(all, {.data = nullptr, .bytes = 0, .root = 0}, stream.handle()), device.info().name);
  }
  for (const auto& stream : streams) stream->synchronize();
  if (word(shared.cancelled).load() == cuda::kNotCancelled) return;
  throw DeviceError(ErrorCode::kUnsupported,
                    fmt::format("{} replicas cannot wait for one another on it: of their {} streams some wait in "
                                "line behind others",
                                local_replicas(), count),
                    device.info().name,
                    "set CUDA_DEVICE_MAX_CONNECTIONS=32 before the process first uses CUDA, unset "
                    "CUDA_LAUNCH_BLOCKING, or use fewer replicas");
}

// Freeing memory waits for the GPU: no replica may still be waiting there for others that will not arrive.
SharedGpuCollective::~SharedGpuCollective() { abort("the collective is being destroyed"); }

void SharedGpuCollective::all_reduce_sum(int replica, const TensorView& tensor, Stream& stream) {
  if (tensor.dtype != DType::kF32) {
    throw ConfigError(fmt::format("all_reduce_sum of {}: only float32 can be summed", to_string(tensor.dtype)));
  }
  submit(
      replica,
      {.data = tensor.as<std::byte>(), .bytes = static_cast<std::int64_t>(tensor.bytes()), .root = cuda::kNoRoot},
      stream);
}

void SharedGpuCollective::broadcast(int replica, int root, const TensorView& tensor, Stream& stream) {
  if (root < 0 || root >= local_replicas()) {
    throw ConfigError(fmt::format("broadcast from replica {} in a group of {}", root, local_replicas()));
  }
  submit(replica,
         {.data = tensor.as<std::byte>(), .bytes = static_cast<std::int64_t>(tensor.bytes()), .root = root},
         stream);
}

void SharedGpuCollective::submit(int replica, const cuda::RendezvousCall& call, Stream& stream) {
  const DeviceInfo& device = devices_[replica].info();
  auto* mine = dynamic_cast<CudaStream*>(&stream);
  if (mine == nullptr || &stream.device() != &devices_[replica]) {
    throw ConfigError(fmt::format("replica {}: the stream is of {}, not of {}", replica,
                                  stream.device().info().name, device.name));
  }
  if (local_replicas() == 1) return;
  CUDA_CHECK(cudaSetDevice(device.ordinal), device.name);
  mine->listen_to(reports_[static_cast<std::size_t>(replica)]);
  const cuda::Rendezvous rendezvous{.state = reinterpret_cast<cuda::RendezvousState*>(state_.data()),
                                    .words = reinterpret_cast<cuda::RendezvousWords*>(words_.data()),
                                    .replica = replica,
                                    .local_replicas = local_replicas(),
                                    .stream_failed = mine->failure_word(),
                                    .patience_ns = patience_ns_};
  CUDA_CHECK(cuda::meet(rendezvous, call, mine->handle()), device.name);
  CUDA_CHECK(cuda::carry_out(rendezvous, call, mine->handle()), device.name);
  CUDA_CHECK(cuda::part(rendezvous, mine->handle()), device.name);
}

const std::uint32_t* SharedGpuCollective::failure_word(int replica) const noexcept {
  return &reinterpret_cast<const cuda::RendezvousWords*>(words_.data())->outcomes[replica];
}

void SharedGpuCollective::abort(const std::string& reason) noexcept {
  const std::lock_guard lock(mutex_);
  auto& words = *reinterpret_cast<cuda::RendezvousWords*>(words_.data());
  std::uint32_t none = cuda::kNotCancelled;
  if (reason_.empty()) reason_ = reason;
  word(words.cancelled).compare_exchange_strong(none, cuda::kCancelledByHost);
  meeting_.reset();  // nobody waits any more
}

std::string SharedGpuCollective::reason() const {
  const std::lock_guard lock(mutex_);
  auto& words = *reinterpret_cast<cuda::RendezvousWords*>(words_.data());
  const std::uint32_t why = word(words.cancelled).load();
  if (why < cuda::kReplicaFailed) return reason_;
  const bool missing = why >= cuda::kReplicaMissing;
  const auto replica = static_cast<int>(why - (missing ? cuda::kReplicaMissing : cuda::kReplicaFailed));
  return devices_[replica].info().name + (missing ? " did not come" : " failed before this collective");
}

}  // namespace headrace
