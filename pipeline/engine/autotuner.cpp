#include "headrace/pipeline/engine/autotuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace headrace {
namespace {

constexpr double kReadersAreBusy = 0.8, kReadersIdle = 0.5, kWantedBusy = 0.7;
constexpr double kComputeWaits = 0.1;
constexpr double kFaster = 1.05;       // worth twice the readers
constexpr double kAsFast = 0.97;       // as good as the one it is compared with
constexpr double kAllowedLoss = 0.96;  // of all steps together
constexpr double kHopeless = 0.8;      // needs no second look
constexpr double kStalls = 0.1, kNoStall = 0.05;
constexpr int kWindows = 4;
constexpr int kShareStep = 32;
constexpr int kPatience = 8, kLongPatience = 64;

}  // namespace

Autotuner::Autotuner(const TuningLimits& limits)
    : limits_(limits), threads_(limits.threads), readers_(limits.readers), kept_readers_(limits.readers) {
  threads_reason_ = limits.min_threads == limits.threads ? "as asked for" : "the most allowed, to start with";
  readers_reason_ = limits.min_readers == limits.max_readers ? "as asked for" : "to start with";
  if (readers_ == 0 || limits.min_readers == limits.max_readers) begin_threads();
}

void Autotuner::observe(const TuningWindow& window) {
  if (phase_ != Phase::kSettled) {
    stalled_sum_ += window.stalled;
    ++observed_;
  }
  switch (phase_) {
    case Phase::kReaders: return look_at_readers(window);
    case Phase::kReaderTrial: return judge_readers(window);
    case Phase::kThreads: return try_threads(window);
    case Phase::kSettled: return watch(window);
  }
}

void Autotuner::look_at_readers(const TuningWindow& window) {
  base_rate_ = window.examples_per_second;
  const bool starve = window.compute_waits > kComputeWaits && window.readers_busy > kReadersAreBusy;
  if (starve && readers_ < limits_.max_readers) {
    readers_ = std::min(2 * readers_, limits_.max_readers);
    phase_ = Phase::kReaderTrial;
    return;
  }
  const int enough =
      std::max(limits_.min_readers, static_cast<int>(std::ceil(readers_ * window.readers_busy / kWantedBusy)));
  if (!starve && window.readers_busy < kReadersIdle && enough < readers_) {
    readers_ = enough;
    phase_ = Phase::kReaderTrial;
    return;
  }
  readers_reason_ = fmt::format("compute threads wait {:.0f} % of their time, readers are busy {:.0f} % of theirs",
                                100 * window.compute_waits, 100 * window.readers_busy);
  begin_threads();
}

void Autotuner::judge_readers(const TuningWindow& window) {
  const double ratio = base_rate_ > 0 ? window.examples_per_second / base_rate_ : 1;
  const bool more = readers_ > kept_readers_;
  if (ratio >= (more ? kFaster : kAsFast)) {
    readers_reason_ = fmt::format("{:.2f} of the rate with {}", ratio, kept_readers_);
    kept_readers_ = readers_;
    if (more) return look_at_readers(window);
  } else {
    readers_reason_ = fmt::format("{} give {:.2f} of the rate", readers_, ratio);
    readers_ = kept_readers_;
  }
  begin_threads();
}

void Autotuner::begin_threads() {
  phase_ = Phase::kThreads;
  kept_ = threads_;
  step_ = std::max(1, limits_.threads / 4);
  next_candidate();
}

void Autotuner::next_candidate() {
  while (step_ > 0 && kept_ - step_ < limits_.min_threads) step_ /= 2;
  if (step_ == 0) {
    threads_ = kept_;
    phase_ = Phase::kSettled;
    if (!refused_.empty()) threads_reason_ = refused_;
    return;
  }
  candidate_ = kept_ - step_;
  threads_ = candidate_;
  windows_ = 0;
  candidate_rate_ = kept_rate_ = candidate_stalled_ = 0;
}

void Autotuner::try_threads(const TuningWindow& window) {
  if (threads_ == candidate_) {
    candidate_rate_ += window.examples_per_second;
    candidate_stalled_ = std::max(candidate_stalled_, window.stalled);
  } else {
    kept_rate_ += window.examples_per_second;
  }
  ++windows_;
  const bool pairs = windows_ % 2 == 0;
  if (windows_ == kWindows || (pairs && candidate_rate_ < kHopeless * kept_rate_)) return judge_threads();
  threads_ = pairs ? candidate_ : kept_;
}

void Autotuner::judge_threads() {
  const double ratio = kept_rate_ > 0 ? candidate_rate_ / kept_rate_ : 1;
  const double loss = loss_ * std::min(1.0, ratio);
  const bool as_fast = ratio >= kAsFast && loss >= kAllowedLoss;
  if (as_fast || candidate_stalled_ < kNoStall) {
    threads_reason_ = as_fast ? fmt::format("{:.2f} of the rate with {}", ratio, kept_)
                              : fmt::format("consumers wait {:.0f} % of their time", 100 * candidate_stalled_);
    refused_.clear();
    kept_ = candidate_;
    if (as_fast) loss_ = loss;
  } else {
    refused_ = fmt::format("{} give {:.2f} of the rate", candidate_, ratio);
    step_ /= 2;
  }
  next_candidate();
}

// Tuned while the consumer was slow, and now it is not: what was enough then is not enough any more.
void Autotuner::watch(const TuningWindow& window) {
  const bool was_ahead = observed_ > 0 && stalled_sum_ / observed_ < kNoStall;
  const bool cpu_bound = window.compute_waits < kComputeWaits;
  if (!was_ahead || !cpu_bound || window.stalled < kStalls || threads_ == limits_.threads) {
    return share_decoding(window);
  }
  threads_reason_ = fmt::format("consumers that were slower at first now wait {:.0f} % of their time with {}",
                                100 * window.stalled, threads_);
  threads_ = limits_.threads;
}

// Judges the last change of the share, and makes the next one.
void Autotuner::share_decoding(const TuningWindow& window) {
  if (!limits_.decodes) return;
  if (share_ != kept_share_ && window.examples_per_second < kAsFast * share_rate_) {
    decoding_reason_ = fmt::format("{} % give {:.2f} of the rate", 100 * share_ / kWholeShare,
                                   window.examples_per_second / share_rate_);
    share_ = kept_share_;
    patience_ = kLongPatience;
    fell_ = false;
    return;
  }
  kept_share_ = share_;
  share_rate_ = window.examples_per_second;
  if (patience_ > 0) --patience_;
  const bool starve = window.stalled >= kStalls && window.compute_waits < kComputeWaits;
  if (starve && share_ < kWholeShare && (patience_ <= kPatience || fell_)) {
    share_ = std::min(share_ + kShareStep, kWholeShare);
    patience_ = kPatience;
    fell_ = false;
  } else if (window.stalled < kNoStall && share_ > 0 && patience_ == 0) {
    share_ = std::max(share_ - kShareStep, 0);
    patience_ = kLongPatience;
    fell_ = true;
  } else {
    return;
  }
  decoding_reason_ = fmt::format("consumers wait {:.0f} % of their time", 100 * window.stalled);
}

}  // namespace headrace
