// A byte buffer borrowed for one call from the thread's own buffers: no allocation once warm.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace headrace {

class BorrowedBytes {
 public:
  BorrowedBytes() {
    if (spare().empty()) return;
    bytes_ = std::move(spare().back());
    spare().pop_back();
  }
  ~BorrowedBytes() {
    try {
      spare().push_back(std::move(bytes_));
    } catch (...) {  // freed instead of kept
    }
  }
  BorrowedBytes(const BorrowedBytes&) = delete;
  BorrowedBytes& operator=(const BorrowedBytes&) = delete;

  std::vector<std::byte>& operator*() noexcept { return bytes_; }

 private:
  static std::vector<std::vector<std::byte>>& spare() {
    static thread_local std::vector<std::vector<std::byte>> buffers;
    return buffers;
  }

  std::vector<std::byte> bytes_;
};

}  // namespace headrace
