// The replicas of several workers as those of one collective: what is tested of one process's collective is tested
// of a world's.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/collective.h"
#include "headrace/devices/workers.h"

namespace headrace::test {

// Calls `act(rank)` for each worker on a thread of its own; throws the first one's exception.
inline void on_threads(int workers, const std::function<void(int rank)>& act) {
  std::vector<std::future<void>> all;
  for (int rank = 0; rank < workers; ++rank) all.push_back(std::async(std::launch::async, act, rank));
  for (const auto& each : all) each.wait();
  for (auto& each : all) each.get();
}

// How replicas are divided among workers: two where they can be, else one each.
inline int workers_of(int replicas) { return replicas % 2 == 0 ? 2 : replicas; }

// The devices must outlive it.
class WorldAsOne final : public Collective {
 public:
  using Join = std::function<std::shared_ptr<Workers>(int rank)>;

  // Divides the devices among the workers that `join` returns.
  WorldAsOne(DeviceGroup& devices, int workers, const Join& join) : parts_(static_cast<std::size_t>(workers)) {
    DeviceGroup rest = devices.repeated(1);
    const int each = devices.size() / workers;
    for (int rank = 0; rank < workers; ++rank) {
      DeviceGroup later = rank + 1 < workers ? rest.split(each) : devices.repeated(1);
      part(rank).devices = std::make_unique<DeviceGroup>(std::move(rest));
      rest = std::move(later);
    }
    on_threads(workers, [&](int rank) {
      part(rank).workers = join(rank);
      part(rank).owned = create_collective(*part(rank).devices, part(rank).workers);
      part(rank).collective = part(rank).owned.get();
    });
  }
  ~WorldAsOne() override {
    ordered_.reset();
    on_threads(workers(), [&](int rank) {
      part(rank).owned.reset();
      part(rank).workers.reset();
    });
  }

  int local_replicas() const noexcept override { return workers() * parts_[0].collective->local_replicas(); }
  bool runs_beside() const noexcept override { return parts_[0].collective->runs_beside(); }
  Collective& in_order() override {
    if (ordered_) return *ordered_;
    std::vector<Part> ordered(parts_.size());
    on_threads(workers(), [&](int rank) {
      ordered[static_cast<std::size_t>(rank)].collective = &part(rank).collective->in_order();
    });
    ordered_.reset(new WorldAsOne(std::move(ordered)));
    return *ordered_;
  }
  void all_reduce_sum(int replica, const TensorView& tensor, Stream& stream) override {
    of(replica).all_reduce_sum(replica - of(replica).first_replica(), tensor, stream);
  }
  void broadcast(int replica, int root, const TensorView& tensor, Stream& stream) override {
    of(replica).broadcast(replica - of(replica).first_replica(), root, tensor, stream);
  }
  std::int64_t waited_ns(int replica) const noexcept override {
    return of(replica).waited_ns(replica - of(replica).first_replica());
  }
  void abort(const std::string& reason) noexcept override { parts_[0].collective->abort(reason); }

 private:
  struct Part {
    std::unique_ptr<DeviceGroup> devices;
    std::shared_ptr<Workers> workers;
    std::unique_ptr<Collective> owned;
    Collective* collective = nullptr;
  };

  explicit WorldAsOne(std::vector<Part> parts) : parts_(std::move(parts)) {}

  int workers() const noexcept { return static_cast<int>(parts_.size()); }
  Part& part(int rank) { return parts_[static_cast<std::size_t>(rank)]; }
  Collective& of(int replica) const {
    return *parts_[static_cast<std::size_t>(replica / parts_[0].collective->local_replicas())].collective;
  }

  std::vector<Part> parts_;
  std::unique_ptr<WorldAsOne> ordered_;
};

}  // namespace headrace::test
