#include "headrace/devices/base/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string_view>

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
  fmt::format_to(out, "\n],\"displayTimeUnit\":\"ms\",\"otherData\":{{\"dropped\":{}}}}}\n", dropped);
  return json;
}

}  // namespace headrace
