// Measures short windows of the running stream for the autotuner and parks threads as it says.
#include <algorithm>

#include "headrace/pipeline/engine/stream_engine.h"

namespace headrace {
namespace {

constexpr std::uint64_t kWindowNs = 150'000'000;
constexpr std::uint64_t kWatchNs = 1'000'000'000;  // once settled
constexpr std::uint64_t kBatches = 4;              // a window holds at least

double share(std::uint64_t part, std::uint64_t whole_ns, int threads) {
  if (whole_ns == 0 || threads == 0) return 0;
  return std::min(1.0, static_cast<double>(part) / (static_cast<double>(whole_ns) * threads));
}

}  // namespace

// `sequence` is the batch that is taken next. Batches that were ready when the setting changed do not count.
void StreamEngine::tune(std::uint64_t sequence, std::uint64_t now) {
  if (options_.threads > 0 && (reader_count_ == 0 || options_.reader_threads > 0)) return;  // all as asked for
  if (!window_.open) {
    if (sequence >= window_.from_sequence) begin_window(sequence, now);
    return;
  }
  const std::uint64_t length = tuner_.settled() ? kWatchNs : kWindowNs;
  if (now - window_.ns < length || sequence - window_.from_sequence < kBatches) return;
  const int threads = tuner_.threads(), readers = tuner_.readers();
  tuner_.observe(end_window(now));
  apply_tuning();
  const bool changed = threads != tuner_.threads() || readers != tuner_.readers();
  window_ = {.from_sequence = sequence + (changed ? slots_.size() : 0)};
  if (!changed) begin_window(sequence, now);
}

void StreamEngine::begin_window(std::uint64_t sequence, std::uint64_t now) {
  window_ = {.from_sequence = sequence, .ns = now, .open = true};
  for (const Consumer& consumer : consumers_)
    window_.examples += consumer.examples.load(std::memory_order_relaxed);
  window_.stall_ns = consumers_.front().stall_ns.load(std::memory_order_relaxed);
  for (const EngineThread& thread : workers_) window_.waits_ns += thread.state().waits.ns();
  for (const EngineThread& thread : readers_) window_.read_ns += thread.state().reading.ns();
}

TuningWindow StreamEngine::end_window(std::uint64_t now) const {
  std::uint64_t examples = 0, waits = 0, reading = 0;
  for (const Consumer& consumer : consumers_) examples += consumer.examples.load(std::memory_order_relaxed);
  for (const EngineThread& thread : workers_) waits += thread.state().waits.ns();
  for (const EngineThread& thread : readers_) reading += thread.state().reading.ns();
  const std::uint64_t stall = consumers_.front().stall_ns.load(std::memory_order_relaxed);
  const std::uint64_t length = now - window_.ns;
  return {
      .examples_per_second = static_cast<double>(examples - window_.examples) * 1e9 / static_cast<double>(length),
      .stalled = share(stall - window_.stall_ns, length, 1),
      .compute_waits = share(waits - window_.waits_ns, length, tuner_.threads()),
      .readers_busy = share(reading - window_.read_ns, length, tuner_.readers())};
}

void StreamEngine::apply_tuning() {
  const bool same = active_threads_.load() == tuner_.threads() && active_readers_.load() == tuner_.readers();
  if (!same) board_->allow(tuner_.threads(), tuner_.readers());
  active_threads_.store(tuner_.threads());
  active_readers_.store(tuner_.readers());
  if (same && tuned_.load() == tuner_.settled()) return;
  note({.what = "threads", .value = std::to_string(tuner_.threads()), .reason = tuner_.threads_reason()});
  if (reader_count_ > 0) {
    note({.what = "readers", .value = std::to_string(tuner_.readers()), .reason = tuner_.readers_reason()});
  }
  tuned_.store(tuner_.settled());
}

}  // namespace headrace
