#include "headrace/pipeline/engine/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace headrace {
namespace {

constexpr std::uint64_t kWindowNs = 150'000'000;
constexpr std::uint64_t kWatchNs = 1'000'000'000;  // once settled
constexpr std::uint64_t kMinBatches = 4;           // of a window
// Readers that a run begins with where they are chosen.
constexpr int kFirstReaders = 4;

TuningLimits tuning_limits(const RunPlan& run) {
  const bool choose_readers = run.options.reader_threads == 0;
  const bool remote = run.reads_network();  // readers that wait cost nothing
  return {.threads = run.lanes,
          .min_threads = run.options.threads > 0 ? run.lanes : 1,
          .readers = choose_readers && !remote ? std::min(run.readers, kFirstReaders) : run.readers,
          .min_readers = choose_readers && !remote ? 1 : run.readers,
          .max_readers = run.readers,
          .decodes = run.decoding.field && run.options.decode == ConvertAt::kAuto};
}

double share(std::uint64_t part, std::uint64_t whole_ns, int threads) {
  if (whole_ns == 0 || threads == 0) return 0;
  return std::min(1.0, static_cast<double>(part) / (static_cast<double>(whole_ns) * threads));
}

// Saturates at 0: the wait time may seem to shrink if an idle lane begins while others are counted.
std::uint64_t difference(std::uint64_t now, std::uint64_t then) { return now > then ? now - then : 0; }

}  // namespace

Tuning::Tuning(const RunPlan& run, const Ring& ring, const Delivery& delivery, const Readers& readers,
               Compute& compute, ReadAhead& read_ahead, Choices& choices)
    : run_(run),
      ring_(ring),
      delivery_(delivery),
      readers_(readers),
      compute_(compute),
      read_ahead_(read_ahead),
      choices_(choices),
      tuner_(tuning_limits(run)) {
  if (run.decoding.field && run.options.decode == ConvertAt::kDevice) {
    compute.share_decoding(Autotuner::kWholeShare);
    choices_.note({.what = "decoding", .value = "on the device", .reason = "as the options say"});
  }
  apply();
}

// Batches that were ready when the setting changed do not count.
void Tuning::observe() {
  const bool chosen = run_.options.threads > 0 && (run_.readers == 0 || run_.options.reader_threads > 0);
  if (chosen && !tuner_.decodes()) return;  // as asked for
  const std::uint64_t sequence = delivery_.consumers().front()->taken.load(std::memory_order_relaxed),
                      now = ring_.clock().now();
  if (!open_) {
    if (sequence >= from_sequence_) begin_window(sequence, now);
    return;
  }
  const std::uint64_t length = tuner_.settled() ? kWatchNs : kWindowNs;
  if (now - begin_.ns < length || sequence - from_sequence_ < kMinBatches) return;
  const int threads = tuner_.threads(), readers = tuner_.readers(), decoding = tuner_.device_share();
  tuner_.observe(window_to(sums(now)));
  apply();
  const bool changed =
      threads != tuner_.threads() || readers != tuner_.readers() || decoding != tuner_.device_share();
  open_ = false;
  from_sequence_ = sequence + (changed ? ring_.size() : 0);
  if (!changed) begin_window(sequence, now);
}

void Tuning::begin_window(std::uint64_t sequence, std::uint64_t now) {
  from_sequence_ = sequence;
  begin_ = sums(now);
  open_ = true;
}

Tuning::Sums Tuning::sums(std::uint64_t now) const {
  Sums sums{.ns = now, .waits_ns = compute_.lanes().waited_ns(now)};
  for (const auto& consumer : delivery_.consumers()) {
    sums.examples += consumer->examples.load(std::memory_order_relaxed);
  }
  sums.consumer_wait_ns = delivery_.consumers().front()->wait_ns.load(std::memory_order_relaxed);
  for (const EngineThread& thread : readers_.threads()) sums.read_ns += thread.state().reading.ns();
  return sums;
}

TuningWindow Tuning::window_to(const Sums& now) const {
  const std::uint64_t length = now.ns - begin_.ns;
  return {.examples_per_second =
              static_cast<double>(now.examples - begin_.examples) * 1e9 / static_cast<double>(length),
          .stalled = share(now.consumer_wait_ns - begin_.consumer_wait_ns, length, 1),
          .compute_waits = share(difference(now.waits_ns, begin_.waits_ns), length, tuner_.threads()),
          .readers_busy = share(now.read_ns - begin_.read_ns, length, tuner_.readers())};
}

void Tuning::apply() {
  const bool same = lanes_now_.load() == tuner_.threads() && readers_now_.load() == tuner_.readers();
  lanes_now_.store(tuner_.threads());
  readers_now_.store(tuner_.readers());
  if (!same) {
    read_ahead_.allow(tuner_.readers());
    compute_.lanes().allow(tuner_.threads());
  }
  if (tuner_.decodes() && std::exchange(decoding_now_, tuner_.device_share()) != tuner_.device_share()) {
    compute_.share_decoding(tuner_.device_share());
    choices_.note({.what = "decoding",
                   .value = fmt::format("{} % on the device", 100 * decoding_now_ / Autotuner::kWholeShare),
                   .reason = tuner_.decoding_reason()});
  }
  if (same && settled_.load() == tuner_.settled()) return;
  choices_.note({.what = "threads", .value = std::to_string(tuner_.threads()), .reason = tuner_.threads_reason()});
  if (run_.readers > 0) {
    choices_.note(
        {.what = "readers", .value = std::to_string(tuner_.readers()), .reason = tuner_.readers_reason()});
  }
  settled_.store(tuner_.settled());
}

}  // namespace headrace
