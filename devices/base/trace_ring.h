// The latest spans of one thread, in fixed memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

// Something a thread did from `begin_ns` to `end_ns` of now_ns().
struct TraceSpan {
  const char* name = nullptr;  // lives as long as the ring: a literal, or kept by the trace
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  std::uint64_t batch = 0;  // it was done for
  std::uint64_t items = 0;  // how many examples
};

// Written by one thread, read by any at any time; neither waits for the other. The oldest spans are overwritten.
class TraceRing {
 public:
  TraceRing(std::string thread, std::size_t capacity);

  void add(const TraceSpan& span) noexcept;

  const std::string& thread() const noexcept { return thread_; }
  // Whole spans only, in the order they were added.
  std::vector<TraceSpan> spans() const;
  // How many were overwritten.
  std::uint64_t dropped() const noexcept;

 private:
  struct Cell {
    std::atomic<const char*> name{nullptr};
    std::atomic<std::uint64_t> begin{0}, end{0}, batch{0}, items{0};
  };

  std::string thread_;
  std::size_t capacity_;
  std::unique_ptr<Cell[]> cells_;
  std::atomic<std::uint64_t> added_{0};
};

}  // namespace headrace
