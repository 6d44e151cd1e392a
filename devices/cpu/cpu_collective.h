// Sums and copies among CPU replicas of one process. Private to the CPU backend.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/collective.h"

namespace headrace {

// A cancellable barrier of a fixed number of threads. Thread-safe; waiting allocates nothing.
class CpuBarrier {
 public:
  explicit CpuBarrier(int threads) : threads_(static_cast<std::uint32_t>(threads)) {}

  // Waits for all threads and returns true; returns false once the barrier is or was cancelled.
  bool wait();

  // Releases all present and future waiters. The first reason is kept.
  void cancel(const std::string& reason) noexcept;
  std::string reason() const;

 private:
  const std::uint32_t threads_;
  alignas(64) std::atomic<std::uint32_t> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> generation_{0};
  std::atomic<bool> cancelled_{false};
  mutable std::mutex mutex_;
  std::string reason_;  // by mutex_
};

// The replicas' streams meet; then each one sums its own slice of the vector over all replicas, in place, and
// writes it to all. A replica whose stream failed before reaching a call aborts the group. State is allocated
// once; a call allocates only what submitting to a stream does.
class CpuCollective final : public Collective {
 public:
  explicit CpuCollective(DeviceGroup& devices);

  int local_replicas() const noexcept override { return devices_.size(); }
  void all_reduce_sum(int replica, const TensorView& tensor, Stream& stream) override;
  void broadcast(int replica, int root, const TensorView& tensor, Stream& stream) override;
  std::int64_t waited_ns(int replica) const noexcept override {
    return members_[static_cast<std::size_t>(replica)].waited_ns.load(std::memory_order_relaxed);
  }
  void abort(const std::string& reason) noexcept override { barrier_.cancel(reason); }

 private:
  static constexpr int kNoRoot = -1;  // all-reduce

  // A replica's arguments of a call.
  struct Call {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    int root = kNoRoot;
  };
  struct alignas(64) Member {
    Call call;
    std::atomic<std::int64_t> waited_ns{0};  // written by the replica's stream
  };

  void submit(int replica, const Call& call, Stream& stream);
  void meet(int replica, const Call& call);
  void wait(int replica);
  void reduce_slice(int replica);
  bool calls_agree() const noexcept;

  DeviceGroup& devices_;
  CpuBarrier barrier_;
  std::vector<Member> members_;  // each written by its replica, read by all between two meetings
  std::vector<float*> vectors_;  // scratch: one row of local_replicas() pointers per replica
};

// Adds the `vectors`, each of `count` elements, as one pairwise tree ((0+1)+(2+3))+... and writes the sum to all.
void sum_in_place(std::span<float* const> vectors, std::size_t count) noexcept;

}  // namespace headrace
