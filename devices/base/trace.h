// Records what threads do: rings of spans, written for Perfetto (ui.perfetto.dev) or chrome://tracing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

// Work of a thread from `begin_ns` to `end_ns` of now_ns().
struct TraceSpan {
  const char* name = nullptr;  // lives as long as the ring: a literal, or kept by the trace
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  std::uint64_t batch = 0;  // for which it was done
  std::uint64_t items = 0;  // number of examples
};

// Written by one thread, read by any at any time; neither waits for the other. The oldest spans are overwritten.
class TraceRing {
 public:
  TraceRing(std::string thread, std::size_t capacity);

  void add(const TraceSpan& span) noexcept;

  const std::string& thread() const noexcept { return thread_; }
  // Returns complete spans only, in the order they were added.
  std::vector<TraceSpan> spans() const;
  // Returns how many were overwritten.
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

// Thread-safe.
class Trace {
 public:
  // `spans_per_thread` bounds each ring.
  explicit Trace(std::size_t spans_per_thread) : spans_(spans_per_thread) {}

  // Creates a ring for one thread; it lives as long as the trace.
  TraceRing& ring(const std::string& thread);

  // Returns a copy of a span's name that lives as long as the trace, for shorter-lived names.
  const char* keep(const std::string& name);

  // Returns the Trace Event Format: one complete event ("X") per span with args batch and items, times in
  // microseconds since the first span, which began at otherData.begin_ns of now_ns(); otherData.dropped counts the
  // spans that were overwritten.
  std::string to_json() const;

 private:
  std::size_t spans_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<TraceRing>> rings_;  // by mutex_
  std::set<std::string> names_;                    // by mutex_
};

}  // namespace headrace
