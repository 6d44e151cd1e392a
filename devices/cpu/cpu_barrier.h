// A meeting point of a fixed number of threads that can be called off. Private to the CPU backend.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

namespace headrace {

// Thread-safe; allocates nothing to wait.
class CpuBarrier {
 public:
  explicit CpuBarrier(int threads) : threads_(static_cast<std::uint32_t>(threads)) {}

  // Returns when all threads are here: true. False as soon as it was cancelled, now or before.
  bool wait();

  // Releases all who wait and all who will. The first reason stays.
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

}  // namespace headrace
