#include "headrace/pipeline/stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace headrace {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
// A consumer that waits for its copies looks busy for as long as they take: then the copies are to blame.
constexpr double kCopyToBlame = 0.9;
// What a thread reads from memory that its caches do not hold, on an ordinary server: decoding leaves its pixels
// there.
constexpr double kCacheBytesPerNs = 4;
// Share of the ceiling below which a run is not bound by a stage.
constexpr double kSaturated = 0.75;

// Threads that work on the same queue.
struct Station {
  std::string name = {};  // of its most expensive stage
  std::string kind;
  double threads = 1;
  double cost_ns = 0;  // of its threads' time, an example delivered

  double rate() const noexcept { return cost_ns > 0 ? threads * 1e9 / cost_ns : kUnbounded; }
};

struct Line {
  Station read{.kind = "disk"}, compute{.kind = "CPU"}, assemble{.kind = "CPU"}, copy{.kind = "copy"},
      consumer{.kind = "consumer"};
  std::string operating = {};  // the most expensive stage of compute's that is no decoding
  double preparing_ns = 0;     // of compute's cost, that a cache would save: decoding
  double decoded_bytes = 0;    // an example, which a cache would have to give back
  bool takes_turns = false;    // a single slot

  Station* station_of(StageKind kind) noexcept {
    switch (kind) {
      case StageKind::kRead: return &read;
      case StageKind::kDecode:
      case StageKind::kOperate: return &compute;
      case StageKind::kAssemble: return &assemble;
      case StageKind::kCopy: return &copy;
      case StageKind::kConsume: return &consumer;
    }
    return &compute;
  }
  const Station& slowest_of_engine() const noexcept {
    const Station* slowest = &read;
    for (const Station* station : {&compute, &assemble, &copy}) {
      if (station->rate() < slowest->rate()) slowest = station;
    }
    return *slowest;
  }
  const Station& slowest() const noexcept {
    if (copy.rate() * kCopyToBlame <= consumer.rate() && &slowest_of_engine() == &copy) return copy;
    return consumer.rate() < slowest_of_engine().rate() ? consumer : slowest_of_engine();
  }
  double rate() const noexcept {
    const double engine = slowest_of_engine().rate();
    if (takes_turns) return 1 / (1 / engine + 1 / consumer.rate());
    return std::min(engine, consumer.rate());
  }
};

// Returns the cost per delivered example, since stages may see only some of the examples (cache hits are not
// decoded). Copies and consumers use their own counts, since a part of them may not be counted yet.
double cost_of(const StageStats& stage, std::uint64_t delivered) {
  const bool own = stage.kind == StageKind::kCopy || stage.kind == StageKind::kConsume;
  const std::uint64_t items = own ? stage.items : delivered;
  return items > 0 ? static_cast<double>(stage.busy_ns) / static_cast<double>(items) : 0;
}

Line line_of(const LoaderStats& stats) {
  Line line{.takes_turns = stats.slots == 1};
  std::array<double, 6> dearest{};
  double dearest_operation = -1;
  for (const StageStats& stage : stats.stages) {
    Station& station = *line.station_of(stage.kind);
    const double cost = cost_of(stage, stats.examples);
    double& highest =
        dearest[static_cast<std::size_t>(stage.kind == StageKind::kDecode ? StageKind::kOperate : stage.kind)];
    if (station.name.empty() || cost > highest) {
      station.name = stage.name;
      highest = cost;
    }
    if (stage.remote) station.kind = "network";
    station.threads = std::max(1, stage.threads);
    station.cost_ns += cost;
    if (stage.kind == StageKind::kOperate && cost > dearest_operation) {
      line.operating = stage.name;
      dearest_operation = cost;
    }
    if (stage.kind != StageKind::kDecode) continue;
    line.preparing_ns += cost;
    line.decoded_bytes += static_cast<double>(stage.decoded_bytes) / static_cast<double>(stats.examples);
  }
  return line;
}

double finite(double rate) { return rate == kUnbounded ? 0 : rate; }

WhatIf what_if(const std::string& what, const Line& changed) {
  return {.what = what,
          .images_per_second = finite(changed.rate()),
          .bottleneck = changed.rate() < kUnbounded ? changed.slowest().name : ""};
}

std::vector<WhatIf> what_ifs_of(const Line& line) {
  std::vector<WhatIf> list;
  const auto add = [&](const std::string& what, auto change) {
    Line changed = line;
    change(changed);
    list.push_back(what_if(what, changed));
  };
  add("one more core and a compute thread on it", [](Line& l) { l.compute.threads += 1; });
  add("twice the cores and compute threads", [](Line& l) { l.compute.threads *= 2; });
  if (line.read.cost_ns > 0) add("twice the readers", [](Line& l) { l.read.threads *= 2; });
  if (line.read.cost_ns > 0 || line.preparing_ns > 0) {
    add("every decoded sample in a cache that a thread reads at 4 GB/s", [](Line& l) {
      l.read.cost_ns = 0;
      l.compute.name = l.operating;
      l.compute.cost_ns += l.decoded_bytes / kCacheBytesPerNs - l.preparing_ns;
    });
  }
  add("a consumer that takes no time", [](Line& l) { l.consumer.cost_ns = 0; });
  add("batches that cost nothing to make", [](Line& l) { l.read.cost_ns = l.compute.cost_ns = 0; });
  return list;
}

}  // namespace

Verdict judge(const LoaderStats& interval) {
  Verdict verdict{.measured_images_per_second = interval.examples_per_second()};
  if (interval.examples == 0) return verdict;
  const Line line = line_of(interval);
  verdict.bottleneck = line.slowest().name;
  verdict.kind = line.slowest().kind;
  // The counters are not read at one moment: what was measured was possible.
  verdict.ceiling_images_per_second =
      line.rate() < kUnbounded ? std::max(line.rate(), verdict.measured_images_per_second) : 0;
  verdict.what_ifs = what_ifs_of(line);
  return verdict;
}

namespace {

// Describes a rate that is `ratio` times the ceiling. If a cost was removed altogether, the rest looks tiny: such
// a ratio is not a forecast.
std::string compared_with_ceiling(double ratio) {
  static constexpr double kMaxPercent = 3, kMaxTimes = 100;
  const double percent = 100 * (ratio - 1);
  if (percent < 0.5) return "no faster";
  if (ratio < kMaxPercent) return fmt::format("{:+.0f} %", percent);
  if (ratio < kMaxTimes) return fmt::format("x {:.{}f}", ratio, ratio < 9.95 ? 1 : 0);
  return fmt::format("more than x {:.0f}: it is no longer the limit", kMaxTimes);
}

}  // namespace

std::string Verdict::sentence() const {
  if (bottleneck.empty()) return "no verdict: nothing was delivered";
  const std::string bound = kind == "consumer" ? "consumer-bound: the input keeps up"
                                               : fmt::format("input-bound at {}: {}", bottleneck, kind);
  std::string text = fmt::format("{}; ceiling {:.0f} images/s, measured {:.0f}", bound, ceiling_images_per_second,
                                 measured_images_per_second);
  if (measured_images_per_second < kSaturated * ceiling_images_per_second) {
    text += fmt::format(
        ": no stage is at work for more than {:.0f} % of the time, threads wait to be woken or for "
        "cores that others use; try larger batches or a deeper prefetch",
        100 * measured_images_per_second / ceiling_images_per_second);
  }
  return text;
}

std::string Verdict::sentence(const WhatIf& what_if) const {
  if (what_if.bottleneck.empty()) return fmt::format("with {}: nothing would bound it", what_if.what);
  std::string compared;
  if (what_if.instead_of > 0) {
    compared = fmt::format("{:.1f} times the {:.0f} without it, in turn",
                           what_if.images_per_second / what_if.instead_of, what_if.instead_of);
  } else if (ceiling_images_per_second > 0) {
    compared = compared_with_ceiling(what_if.images_per_second / ceiling_images_per_second);
  }
  return fmt::format("with {}: {:.0f} images/s ({}), bound by {}", what_if.what, what_if.images_per_second,
                     compared, what_if.bottleneck);
}

}  // namespace headrace
