// A hard bound on bytes: memory is charged before it is allocated, and not allocated if it does not fit.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

namespace headrace {

// Thread-safe.
class MemoryBudget {
 public:
  // `limit` 0: no bound, bytes are only counted. `name` is for messages.
  MemoryBudget(std::string name, std::uint64_t limit) : name_(std::move(name)), limit_(limit) {}

  // Charges bytes. Returns false, and charges nothing, if they would exceed the limit.
  bool try_charge(std::uint64_t bytes) noexcept;
  // Throws Error(kOutOfMemory) naming the budget, the bytes charged, and those that `purpose` needs.
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

// Charged bytes of a budget. Move-only; releases them on destruction. The budget must outlive it; without one,
// bytes are only counted.
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

  // Sets the bytes held. Throws Error(kOutOfMemory) if more do not fit, and then keeps the previous number.
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
