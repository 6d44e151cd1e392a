// Bytes of a budget that somebody holds.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "headrace/pipeline/operations/machinery/memory_budget.h"

namespace headrace {

// Move-only; gives the bytes back when it goes. The budget must outlive it; without one, bytes are only counted.
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
