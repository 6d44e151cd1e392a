#include "headrace/devices/base/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

namespace headrace {
namespace {

std::string json_string(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (byte < 0x20 || byte >= 0x7F) {
      json += fmt::format("\\u{:04x}", byte);
    } else {
      json += c;
    }
  }
  return json + "\"";
}

double microseconds(std::uint64_t ns) { return static_cast<double>(ns) * 1e-3; }

}  // namespace

TraceRing::TraceRing(std::string thread, std::size_t capacity)
    : thread_(std::move(thread)), capacity_(std::max<std::size_t>(1, capacity)), cells_(new Cell[capacity_ + 1]) {}

// A reader that sees any of these stores sees `added_` as it was before them, and so knows that the cell is
// being overwritten.
void TraceRing::add(const TraceSpan& span) noexcept {
  const std::uint64_t index = added_.load(std::memory_order_relaxed);
  Cell& cell = cells_[index % (capacity_ + 1)];
  cell.name.store(span.name, std::memory_order_release);
  cell.begin.store(span.begin_ns, std::memory_order_release);
  cell.end.store(span.end_ns, std::memory_order_release);
  cell.batch.store(span.batch, std::memory_order_release);
  cell.items.store(span.items, std::memory_order_release);
  added_.store(index + 1, std::memory_order_release);
}

std::vector<TraceSpan> TraceRing::spans() const {
  const std::uint64_t added = added_.load(std::memory_order_acquire);
  const std::uint64_t first = added > capacity_ ? added - capacity_ : 0;
  std::vector<TraceSpan> spans;
  for (std::uint64_t index = first; index < added; ++index) {
    const Cell& cell = cells_[index % (capacity_ + 1)];
    spans.push_back({.name = cell.name.load(std::memory_order_acquire),
                     .begin_ns = cell.begin.load(std::memory_order_acquire),
                     .end_ns = cell.end.load(std::memory_order_acquire),
                     .batch = cell.batch.load(std::memory_order_acquire),
                     .items = cell.items.load(std::memory_order_acquire)});
  }
  // One cell more than spans are kept: that of span n - capacity - 1 is overwritten while span n is added.
  const std::uint64_t since = added_.load(std::memory_order_acquire);
  const std::uint64_t whole = since > capacity_ ? since - capacity_ : 0;
  if (whole > first) {
    spans.erase(spans.begin(), spans.begin() + static_cast<std::ptrdiff_t>(std::min(whole, added) - first));
  }
  return spans;
}

std::uint64_t TraceRing::dropped() const noexcept {
  const std::uint64_t added = added_.load(std::memory_order_acquire);
  return added > capacity_ ? added - capacity_ : 0;
}

TraceRing& Trace::ring(const std::string& thread) {
  const std::lock_guard lock(mutex_);
  return *rings_.emplace_back(std::make_unique<TraceRing>(thread, spans_));
}

const char* Trace::keep(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return names_.insert(name).first->c_str();
}

std::string Trace::to_json() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::vector<TraceSpan>> threads;
  std::uint64_t start = std::numeric_limits<std::uint64_t>::max(), dropped = 0;
  for (const auto& ring : rings_) {
    threads.push_back(ring->spans());
    dropped += ring->dropped();
    for (const TraceSpan& span : threads.back()) start = std::min(start, span.begin_ns);
  }
  std::string json = "{\"traceEvents\":[";
  const auto out = std::back_inserter(json);
  for (std::size_t i = 0; i < rings_.size(); ++i) {
    fmt::format_to(out,
                   "{}\n{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":{},\"args\":{{\"name\":{}}}}}",
                   i == 0 ? "" : ",", i + 1, json_string(rings_[i]->thread()));
    for (const TraceSpan& span : threads[i]) {
      fmt::format_to(out,
                     ",\n{{\"ph\":\"X\",\"name\":{},\"pid\":1,\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},"
                     "\"args\":{{\"batch\":{},\"items\":{}}}}}",
                     json_string(span.name), i + 1, microseconds(span.begin_ns - start),
                     microseconds(span.end_ns - span.begin_ns), span.batch, span.items);
    }
  }
  fmt::format_to(out, "\n],\"displayTimeUnit\":\"ms\",\"otherData\":{{\"dropped\":{},\"begin_ns\":{}}}}}\n",
                 dropped, start);
  return json;
}

}  // namespace headrace
