// A hard bound on bytes: what is allocated is charged first, what does not fit is not allocated.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

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

// Bytes of a budget that somebody holds. Move-only; gives the bytes back when it goes. The budget must outlive
// it; without one, bytes are only counted.
class ChargedBytes {
 public:
  ChargedBytes() = default;
  explicit ChargedBytes(MemoryBudget& budget) : budget_(&budget) {}
  ChargedBytes(ChargedBytes&& other) noexcept : budget_(other.budget_), bytes_(std::exchange(other.bytes_, 0)) {}
  ChargedBytes& operator=(ChargedBytes&& other) noexcept {
    release();
    budget_ = other.budget_;
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }
  ~ChargedBytes() { release(); }

  // Holds this many from now on. Error(kOutOfMemory) where more do not fit: then it holds as many as before.
  void hold(std::uint64_t bytes, const std::string& purpose) {
    if (bytes == bytes_) return;
    if (budget_ != nullptr && bytes > bytes_) budget_->charge(bytes - bytes_, purpose);
    if (budget_ != nullptr && bytes < bytes_) budget_->release(bytes_ - bytes);
    bytes_ = bytes;
  }
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  void release() noexcept {
    if (budget_ != nullptr && bytes_ > 0) budget_->release(bytes_);
    bytes_ = 0;
  }

  MemoryBudget* budget_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace headrace
