// Chooses how many bytes of answers to have in flight.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace headrace::remote {

// Twice the line's bandwidth-delay product: less leaves it idle, and more makes what is asked for now wait behind
// what is needed later. Rate and delay are those measured, as in BBR (Cardwell et al., 2016): the maximum of the
// latest rates, the minimum of the latest delays. One thread at a time.
class Pace {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr std::uint64_t kMinBytes = std::uint64_t{1} << 20, kMaxBytes = std::uint64_t{64} << 20;
  // The minimum until the line is known.
  static constexpr std::uint64_t kFirstBytes = std::uint64_t{4} << 20;

  // Takes the time from a request to the first byte of its answer.
  void note_delay(Time now, double seconds);
  // Takes the bytes that came since the last call, those that are still in flight, and whether other requests
  // wait for these to be answered.
  void note_bytes(Time now, std::uint64_t bytes, std::uint64_t in_flight, bool others_wait);

  // Returns the bytes to have in flight, kMinBytes to kMaxBytes.
  std::uint64_t bytes() const noexcept { return bytes_; }
  // Returns the bandwidth-delay product; 0 until more requests have brought no higher rate.
  std::uint64_t bandwidth_delay() const noexcept { return rounds_without_growth_ < kFullAfter ? 0 : line_; }

 private:
  static constexpr int kFullAfter = 3;  // rounds

  double delay() const noexcept;
  double rate() const noexcept;
  void settle();

  std::uint64_t bytes_ = kFirstBytes, line_ = 0;
  int rounds_without_growth_ = 0;
  double full_rate_ = 0;           // from which growth counts
  std::array<double, 8> rates_{};  // bytes per second
  std::size_t latest_ = 0;
  // Since begun_.
  std::uint64_t came_ = 0, min_in_flight_ = 0;
  bool waited_ = false;
  Time begun_{};
  std::array<double, 2> delays_{};  // minimum of this half of a period and of the one before; 0: none
  Time half_{};
};

}  // namespace headrace::remote
