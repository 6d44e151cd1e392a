// A hard bound on bytes: what is allocated is charged first, what does not fit is not allocated.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace headrace {

// Thread-safe.
class MemoryBudget {
 public:
  // `limit` 0: no bound, bytes are only counted. `name` for messages, which named() takes.
  MemoryBudget(std::string name, std::uint64_t limit) : name_(std::move(name)), limit_(limit) {}

  // False, and nothing charged, where it would go beyond the limit.
  bool try_charge(std::uint64_t bytes) noexcept;
  // Error(kOutOfMemory) that names the budget, what is charged, and what `purpose` needs.
  void charge(std::uint64_t bytes, const std::string& purpose);
  void release(std::uint64_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  const std::string& name() const noexcept { return name_; }
  std::uint64_t limit() const noexcept { return limit_; }
  std::uint64_t used() const noexcept { return used_.load(std::memory_order_relaxed); }

 private:
  std::string name_;
  std::uint64_t limit_;
  std::atomic<std::uint64_t> used_{0};
};

}  // namespace headrace
