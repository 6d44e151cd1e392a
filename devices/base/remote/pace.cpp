#include "headrace/devices/base/remote/pace.h"

#include <algorithm>

namespace headrace::remote {
namespace {

constexpr double kMinMeasured = 0.05;  // seconds, of one rate
constexpr double kHalf = 5;            // seconds for which a delay holds at least
constexpr double kGrowth = 1.25;       // of the rate, as long as the line is not full

double seconds_between(Pace::Time first, Pace::Time last) {
  return std::chrono::duration<double>(last - first).count();
}

}  // namespace

double Pace::delay() const noexcept {
  if (delays_[0] == 0 || delays_[1] == 0) return std::max(delays_[0], delays_[1]);
  return std::min(delays_[0], delays_[1]);
}

double Pace::rate() const noexcept { return *std::ranges::max_element(rates_); }

void Pace::settle() {
  const double line = rate() * delay();
  line_ = static_cast<std::uint64_t>(line);
  const std::uint64_t min = bandwidth_delay() == 0 ? kFirstBytes : kMinBytes;
  bytes_ =
      static_cast<std::uint64_t>(std::clamp(2 * line, static_cast<double>(min), static_cast<double>(kMaxBytes)));
}

void Pace::note_delay(Time now, double seconds) {
  if (half_ == Time{} || seconds_between(half_, now) > kHalf) {
    delays_ = {0, delays_[0]};
    half_ = now;
  }
  delays_[0] = delays_[0] == 0 ? seconds : std::min(delays_[0], seconds);
  settle();
}

void Pace::note_bytes(Time now, std::uint64_t bytes, std::uint64_t in_flight, bool others_wait) {
  if (begun_ == Time{}) begun_ = now;
  min_in_flight_ = came_ == 0 ? in_flight : std::min(min_in_flight_, in_flight);
  came_ += bytes;
  waited_ = waited_ || others_wait;
  const double seconds = seconds_between(begun_, now);
  if (seconds < std::max(kMinMeasured, delay())) return;
  const double now_rate = static_cast<double>(came_) / seconds;
  // A rate that nothing waited for says what was asked for, not what the line carries. More in flight than it
  // holds waits for the line itself.
  const bool full = waited_ || static_cast<double>(min_in_flight_) > 2 * now_rate * delay();
  if (full || now_rate > rate()) {
    rates_[latest_] = now_rate;
    latest_ = (latest_ + 1) % rates_.size();
    settle();
  }
  if (rate() > kGrowth * full_rate_) {
    full_rate_ = rate();
    rounds_without_growth_ = 0;
  } else if (full) {
    ++rounds_without_growth_;
  }
  came_ = 0;
  waited_ = false;
  begun_ = now;
}

}  // namespace headrace::remote
