// How long something waited: counts on a logarithmic scale, four buckets an octave.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace headrace {

// A quantile is true to 12.5 %. Nanoseconds up to 18 minutes; longer waits count as that.
class WaitHistogram {
 public:
  static constexpr std::size_t kBuckets = 160;

  static std::size_t bucket_of(std::uint64_t ns) noexcept {
    if (ns < 4) return static_cast<std::size_t>(ns);
    const int octave = static_cast<int>(std::bit_width(ns)) - 3;
    const std::size_t bucket = static_cast<std::size_t>(4 * octave) + static_cast<std::size_t>(ns >> octave);
    return bucket < kBuckets ? bucket : kBuckets - 1;
  }
  // The middle of a bucket.
  static double value_of(std::size_t bucket) noexcept;

  void add(std::size_t bucket, std::uint64_t count) noexcept { counts_[bucket] += count; }
  std::uint64_t count() const noexcept;
  // The wait that this share (0 to 1) of all waits does not exceed; 0 where nothing was counted.
  double quantile_ns(double share) const noexcept;

  WaitHistogram& operator+=(const WaitHistogram& other) noexcept;
  // `earlier` is an older reading of the same counts.
  WaitHistogram& operator-=(const WaitHistogram& earlier) noexcept;

 private:
  std::array<std::uint64_t, kBuckets> counts_{};
};

}  // namespace headrace
