// The collective of a world: first this process's replicas through the local collective, then all processes.
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <span>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/stream.h"
#include "headrace/devices/workers.h"

namespace headrace {
namespace {

// For replicas in host memory. The first replica's stream acts for the process; the others wait for it in the
// local collective's broadcast.
class WorldCollective final : public Collective {
 public:
  WorldCollective(std::unique_ptr<Collective> local, std::shared_ptr<Workers> workers)
      : local_(std::move(local)), workers_(std::move(workers)) {}

  int local_replicas() const noexcept override { return local_->local_replicas(); }
  int world_replicas() const noexcept override { return workers_->count() * local_replicas(); }
  int first_replica() const noexcept override { return workers_->rank() * local_replicas(); }
  bool runs_beside() const noexcept override { return local_->runs_beside(); }

  void all_reduce_sum(int replica, const TensorView& tensor, Stream& stream) override {
    local_->all_reduce_sum(replica, tensor, stream);
    if (replica == 0) {
      stream.call([this, values = std::span(tensor.as<float>(), static_cast<std::size_t>(tensor.elements()))] {
        workers_->all_reduce_sum(values);
      });
    }
    local_->broadcast(replica, 0, tensor, stream);
  }

  // The root's worker sends to the others; each worker then broadcasts from its first replica.
  void broadcast(int replica, int root, const TensorView& tensor, Stream& stream) override {
    const int worker = root / local_replicas();
    if (worker == workers_->rank()) local_->broadcast(replica, root % local_replicas(), tensor, stream);
    if (replica == 0) {
      stream.call([this, worker, bytes = std::span(tensor.as<std::byte>(), tensor.bytes())] {
        workers_->broadcast(bytes, worker);
      });
    }
    local_->broadcast(replica, 0, tensor, stream);
  }

  std::int64_t waited_ns(int replica) const noexcept override { return local_->waited_ns(replica); }

  void abort(const std::string& reason) noexcept override {
    local_->abort(reason);
    workers_->abort(reason);
  }

 private:
  std::unique_ptr<Collective> local_;
  std::shared_ptr<Workers> workers_;
};

}  // namespace

std::unique_ptr<Collective> create_world_collective(std::unique_ptr<Collective> local,
                                                    std::shared_ptr<Workers> workers) {
  workers->require_equal("number of replicas", std::to_string(local->local_replicas()));
  if (!std::has_single_bit(static_cast<unsigned>(local->local_replicas()))) {
    throw ConfigError(fmt::format("{} replicas a worker: over several workers it must be a power of two",
                                  local->local_replicas()),
                      "start more workers with 1 replica each");
  }
  return std::make_unique<WorldCollective>(std::move(local), std::move(workers));
}

std::unique_ptr<Collective> create_collective(DeviceGroup& devices, std::shared_ptr<Workers> workers) {
  std::unique_ptr<Collective> local = create_collective(devices);
  return workers ? create_world_collective(std::move(local), std::move(workers)) : std::move(local);
}

}  // namespace headrace
