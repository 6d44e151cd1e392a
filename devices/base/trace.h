// What threads did when: rings of spans, written out for Perfetto (ui.perfetto.dev) or chrome://tracing.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/trace_ring.h"

namespace HEADRACE_API headrace {

// Thread-safe.
class Trace {
 public:
  // `spans_a_thread` bounds each ring.
  explicit Trace(std::size_t spans_a_thread) : spans_(spans_a_thread) {}

  // A ring for one thread; lives as long as the trace.
  TraceRing& ring(const std::string& thread);

  // A copy of a span's name that lives as long as the trace, for names that live shorter than it.
  const char* keep(const std::string& name);

  // The Trace Event Format: one complete event ("X") a span with args batch and items, times in microseconds
  // since the first span; otherData.dropped counts the spans that were overwritten.
  std::string to_json() const;

 private:
  std::size_t spans_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<TraceRing>> rings_;  // by mutex_
  std::set<std::string> names_;                    // by mutex_
};

}  // namespace headrace
