// The collective of a world: first this process's replicas through the local collective, then all processes.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "headrace/devices/backend.h"
#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/registry.h"
#include "headrace/devices/stream.h"
#include "headrace/devices/workers.h"

namespace headrace {
namespace {

// Of pinned memory. Large enough that the network's latency does not count, small beside a batch.
constexpr std::int64_t kStagedBytes = std::int64_t{8} << 20;

// Memory in which the host sees values of a device: allocated by the first call, for tensors of any size, which
// pass through in parts. Thread-safe.
class Staging {
 public:
  std::span<std::byte> memory(Device& device) {
    std::call_once(once_, [&] { buffer_ = device.allocate_pinned(static_cast<std::size_t>(kStagedBytes)); });
    return {buffer_.data(), buffer_.size()};
  }

 private:
  std::once_flag once_;
  Buffer buffer_;
};

// Calls `each` with the tensor's parts of up to `bytes`.
template <typename Each>
void for_each_part(const TensorView& tensor, std::int64_t bytes, const Each& each) {
  const auto size = static_cast<std::int64_t>(size_of(tensor.dtype));
  const std::int64_t limit = bytes / size, elements = tensor.elements();
  for (std::int64_t at = 0; at < elements; at += limit) {
    each(TensorView{tensor.as<std::byte>() + at * size, Shape{std::min(limit, elements - at)}, tensor.dtype});
  }
}

// The first replica's stream acts for the process; the others wait for it in the local collective's broadcast.
class WorldCollective final : public Collective {
 public:
  WorldCollective(std::unique_ptr<Collective> local, std::shared_ptr<Workers> workers)
      : owned_(std::move(local)), local_(*owned_), workers_(std::move(workers)) {}
  // Over the same replicas as another one, which owns `local` and outlives it.
  WorldCollective(Collective& local, std::shared_ptr<Workers> workers)
      : local_(local), workers_(std::move(workers)) {}

  int local_replicas() const noexcept override { return local_.local_replicas(); }
  int world_replicas() const noexcept override { return workers_->count() * local_replicas(); }
  int first_replica() const noexcept override { return workers_->rank() * local_replicas(); }
  bool runs_beside() const noexcept override { return local_.runs_beside(); }

  Collective& in_order() override;
  void all_reduce_sum(int replica, const TensorView& tensor, Stream& stream) override;
  void broadcast(int replica, int root, const TensorView& tensor, Stream& stream) override;

  // The first replica waits for the other workers, the others of this process for the first one.
  std::int64_t waited_ns(int replica) const noexcept override {
    const std::int64_t local = local_.waited_ns(replica) + (replica == 0 ? waited_ns_.load() : 0);
    return ordered_ && replica == 0 ? local + ordered_->waited_ns_ : local;
  }

  // A failure between the workers is the stream's: it is that of a host function.
  const std::uint32_t* failure_word(int replica) const noexcept override { return local_.failure_word(replica); }
  void abort(const std::string& reason) noexcept override {
    workers_->abort(reason);
    local_.abort(reason);
  }

 private:
  // Returns whether the sum of this process's replicas is a subtree of the world's.
  bool is_subtree() const noexcept { return std::has_single_bit(static_cast<unsigned>(local_replicas())); }

  void sum_over_workers(const TensorView& tensor, Stream& stream);
  void broadcast_over_workers(int root, const TensorView& tensor, Stream& stream);
  void sum_values_of_all(int replica, const TensorView& part, Stream& stream);
  void add_values_of_all(std::span<float> values, std::size_t count);
  // Makes a call of the workers in stream order.
  template <typename Call>
  void call(Stream& stream, Call call) {
    stream.call([this, call = std::move(call)] {
      const Stopwatch waiting;
      call(*workers_);
      waited_ns_ += static_cast<std::int64_t>(waiting.nanoseconds());
    });
  }

  std::unique_ptr<Collective> owned_;  // null: another one's
  Collective& local_;
  std::shared_ptr<Workers> workers_;
  Staging staging_;
  std::atomic<std::int64_t> waited_ns_{0};
  std::unique_ptr<WorldCollective> ordered_;  // made by the first in_order()
};

Collective& WorldCollective::in_order() {
  Collective& ordered = local_.in_order();
  if (&ordered == &local_) return *this;
  if (!ordered_) ordered_ = std::make_unique<WorldCollective>(ordered, workers_);
  return *ordered_;
}

void WorldCollective::all_reduce_sum(int replica, const TensorView& tensor, Stream& stream) {
  if (tensor.dtype != DType::kF32) {
    throw ConfigError(fmt::format("all_reduce_sum of {}: only float32 can be summed", to_string(tensor.dtype)));
  }
  if (!is_subtree()) {
    const std::int64_t slot = kStagedBytes / world_replicas();
    return for_each_part(tensor, slot, [&](const TensorView& part) { sum_values_of_all(replica, part, stream); });
  }
  local_.all_reduce_sum(replica, tensor, stream);
  if (replica == 0) sum_over_workers(tensor, stream);
  local_.broadcast(replica, 0, tensor, stream);
}

void WorldCollective::sum_over_workers(const TensorView& tensor, Stream& stream) {
  const auto sum = [&](float* values, std::int64_t count) {
    call(stream, [all = std::span(values, static_cast<std::size_t>(count))](Workers& workers) {
      workers.all_reduce_sum(all);
    });
  };
  if (stream.device().info().host_memory) return sum(tensor.as<float>(), tensor.elements());
  std::byte* const staged = staging_.memory(stream.device()).data();
  for_each_part(tensor, kStagedBytes, [&](const TensorView& part) {
    stream.copy(staged, part.data, part.bytes());
    sum(reinterpret_cast<float*>(staged), part.elements());
    stream.copy(part.data, staged, part.bytes());
  });
}

// Every replica leaves its values in its slot of the staging memory. The local sum only tells that all of them
// have: its result is replaced by the world's.
void WorldCollective::sum_values_of_all(int replica, const TensorView& part, Stream& stream) {
  const auto slots = staging_.memory(stream.device());
  std::byte* const mine = slots.data() + part.bytes() * static_cast<std::size_t>(first_replica() + replica);
  stream.copy(mine, part.data, part.bytes());
  local_.all_reduce_sum(replica, part, stream);
  if (replica == 0) {
    const std::size_t count = static_cast<std::size_t>(part.elements());
    float* const values = reinterpret_cast<float*>(slots.data());
    const std::size_t all = count * static_cast<std::size_t>(world_replicas());
    call(stream, [this, all = std::span(values, all), count](Workers&) { add_values_of_all(all, count); });
    stream.copy(part.data, values, part.bytes());
  }
  local_.broadcast(replica, 0, part, stream);
}

// Adds `count` values of every replica of the world, one after the other, into the first one's.
void WorldCollective::add_values_of_all(std::span<float> values, std::size_t count) {
  const std::size_t of_worker = count * static_cast<std::size_t>(local_replicas());
  for (int worker = 0; worker < workers_->count(); ++worker) {
    const auto theirs = values.subspan(of_worker * static_cast<std::size_t>(worker), of_worker);
    workers_->broadcast(std::as_writable_bytes(theirs), worker);
  }
  for (std::size_t stride = count; stride < values.size(); stride *= 2) {
    for (std::size_t at = 0; at + stride < values.size(); at += 2 * stride) {
      const float* const other = values.data() + at + stride;
      for (std::size_t i = 0; i < count; ++i) values[at + i] += other[i];
    }
  }
}

// The root's worker sends to the others; then each worker broadcasts from its first replica.
void WorldCollective::broadcast(int replica, int root, const TensorView& tensor, Stream& stream) {
  if (root < 0 || root >= world_replicas()) {
    throw ConfigError(fmt::format("broadcast from replica {} in a group of {}", root, world_replicas()));
  }
  const int worker = root / local_replicas();
  if (worker == workers_->rank()) local_.broadcast(replica, root % local_replicas(), tensor, stream);
  if (replica == 0) broadcast_over_workers(worker, tensor, stream);
  local_.broadcast(replica, 0, tensor, stream);
}

void WorldCollective::broadcast_over_workers(int root, const TensorView& tensor, Stream& stream) {
  const auto send = [&](std::byte* bytes, std::size_t count) {
    call(stream, [all = std::span(bytes, count), root](Workers& workers) { workers.broadcast(all, root); });
  };
  if (stream.device().info().host_memory) return send(tensor.as<std::byte>(), tensor.bytes());
  std::byte* const staged = staging_.memory(stream.device()).data();
  for_each_part(tensor, kStagedBytes, [&](const TensorView& part) {
    stream.copy(staged, part.data, part.bytes());
    send(staged, part.bytes());
    stream.copy(part.data, staged, part.bytes());
  });
}

// Returns whether the backends of all workers connect their devices.
bool all_connect(Workers& workers, bool this_one) {
  const std::vector<std::string> all = workers.all_gather(this_one ? "connects its devices" : "");
  return std::ranges::none_of(all, &std::string::empty);
}

}  // namespace

std::unique_ptr<Collective> create_world_collective(std::unique_ptr<Collective> local,
                                                    std::shared_ptr<Workers> workers) {
  workers->require_equal("number of replicas", std::to_string(local->local_replicas()));
  return std::make_unique<WorldCollective>(std::move(local), std::move(workers));
}

std::unique_ptr<Collective> create_collective(DeviceGroup& devices, std::shared_ptr<Workers> workers) {
  if (!workers) return create_collective(devices);
  const Backend& backend = backend_of(devices, backends());
  if (all_connect(*workers, backend.connects_processes(devices))) {
    return backend.create_world_collective(devices, std::move(workers));
  }
  return create_world_collective(create_collective(devices), std::move(workers));
}

}  // namespace headrace
