#include "headrace/pipeline/stats.h"

namespace headrace {
namespace {

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

const char* to_string(StageKind kind) noexcept {
  switch (kind) {
    case StageKind::kRead: return "read";
    case StageKind::kDecode: return "decode";
    case StageKind::kOperate: return "operate";
    case StageKind::kAssemble: return "assemble";
    case StageKind::kCopy: return "copy";
    case StageKind::kConsume: return "consume";
  }
  return "unknown";
}

double StageStats::ns_per_item() const noexcept {
  return ratio(static_cast<double>(busy_ns), static_cast<double>(items));
}

double StageStats::occupancy(std::uint64_t elapsed_ns) const noexcept {
  return ratio(static_cast<double>(busy_ns), static_cast<double>(elapsed_ns) * threads);
}

}  // namespace headrace
