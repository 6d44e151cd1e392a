// Workers that are threads of one process and meet in its memory: a world without gRPC and Gloo.
#pragma once

#include <unistd.h>

#include "headrace/devices/collective.h"
#include "headrace/devices/workers.h"
#include "headrace/devices/workers/transport.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {

// Outlived by its memberships. Thread-safe.
class ThreadWorld {
 public:
  explicit ThreadWorld(int workers, const WorkerOptions& options = {})
      : hall_(std::make_shared<Hall>()), options_(options) {
    hall_->members.assign(static_cast<std::size_t>(workers), {.host = "thread", .process = getpid()});
    hall_->calls.assign(hall_->members.size(), 0);
  }

  // One of each rank, each used by one thread at a time.
  std::shared_ptr<Workers> join(int rank) const {
    return std::make_shared<Workers>(std::make_unique<Member>(hall_, rank, options_), options_);
  }
  // As if the process of this worker had ended.
  void lose(int rank) { hall_->fail(rank, "was lost"); }

 private:
  struct Meeting {
    std::map<int, std::string> values;
    std::size_t left = 0;
  };

  struct Hall {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<WorkerInfo> members;
    std::vector<int> calls;  // that each has begun
    std::map<int, Meeting> meetings;
    std::string failure;

    void fail(int rank, const std::string& reason) {
      const std::lock_guard lock(mutex);
      const std::string name = members[static_cast<std::size_t>(rank)].to_string(rank);
      if (failure.empty()) failure = name + " " + reason;
      changed.notify_all();
    }
  };

  class Member final : public WorkerTransport {
   public:
    Member(std::shared_ptr<Hall> hall, int rank, const WorkerOptions& options)
        : hall_(std::move(hall)), rank_(rank), limit_(options.call_timeout_seconds) {}

    int rank() const noexcept override { return rank_; }
    const std::vector<WorkerInfo>& members() const noexcept override { return hall_->members; }

    const WorkerFact& transport() const noexcept override {
      static const WorkerFact memory{.name = "transport", .value = "memory", .from = "the test"};
      return memory;
    }

    std::vector<std::string> all_gather(std::string_view mine, std::string_view /*what*/) override {
      std::unique_lock lock(hall_->mutex);
      const int call = hall_->calls[static_cast<std::size_t>(rank_)]++;
      Meeting& meeting = hall_->meetings[call];
      meeting.values[rank_] = mine;
      hall_->changed.notify_all();
      const bool over = hall_->changed.wait_for(
          lock, limit_, [&] { return meeting.values.size() == hall_->members.size() || !hall_->failure.empty(); });
      if (!over) throw DeviceError(ErrorCode::kTimeout, "a worker is late", "a thread");
      if (!hall_->failure.empty()) throw DeviceError(ErrorCode::kCancelled, hall_->failure, "a thread");
      std::vector<std::string> all;
      for (const auto& [rank, value] : meeting.values) all.push_back(value);
      if (++meeting.left == all.size()) hall_->meetings.erase(call);
      return all;
    }

    void all_reduce_sum(float* values, std::size_t count) override {
      std::vector<std::string> all =
          all_gather({reinterpret_cast<const char*>(values), count * sizeof(float)}, "");
      std::vector<std::vector<float>> parts(all.size(), std::vector<float>(count));
      for (std::size_t i = 0; i < all.size(); ++i) std::memcpy(parts[i].data(), all[i].data(), all[i].size());
      for (std::size_t stride = 1; stride < parts.size(); stride *= 2) {
        for (std::size_t at = 0; at + stride < parts.size(); at += 2 * stride) {
          for (std::size_t i = 0; i < count; ++i) parts[at][i] += parts[at + stride][i];
        }
      }
      std::memcpy(values, parts[0].data(), count * sizeof(float));
    }

    void broadcast(std::byte* bytes, std::size_t count, int root) override {
      const auto all = all_gather({reinterpret_cast<const char*>(bytes), rank_ == root ? count : 0}, "");
      std::memcpy(bytes, all[static_cast<std::size_t>(root)].data(), count);
    }

    void set_moment(std::string) override {}
    void sign_off() noexcept override {}
    void abort(const std::string& reason) noexcept override { hall_->fail(rank_, "failed: " + reason); }
    std::string failure() const override {
      const std::lock_guard lock(hall_->mutex);
      return hall_->failure;
    }

   private:
    std::shared_ptr<Hall> hall_;
    int rank_;
    std::chrono::duration<double> limit_;
  };

  std::shared_ptr<Hall> hall_;
  WorkerOptions options_;
};

// The replicas of several workers as those of one collective: what is tested of one process's collective is tested
// of a world's.

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
