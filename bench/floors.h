// What a device reaches at most, measured on it: a benchmark's own rate is a fraction of these.
#pragma once

#include <algorithm>
#include <array>

#include "headrace/bench/device_bench.h"
#include "headrace/devices/base/clock.h"

namespace headrace {

struct Floors {
  double bytes_per_second = 0;  // a large copy within the device, bytes read and bytes written
  double f32_flops = 0;         // a large product through the device's own dense kernel, a second
  double bf16_flops = 0;

  double flops(Precision precision) const { return precision == Precision::kF32 ? f32_flops : bf16_flops; }
};

// Calls run(times), which does the work that often and waits for it. Returns the seconds of one, the median of
// five calls.
template <typename Run>
double seconds_of(DeviceBench& bench, const Run& run) {
  const std::int64_t times = bench.launches() / 4 + 1;
  std::array<double, 5> seconds{};
  for (double& one : seconds) {
    const Stopwatch watch;
    run(times);
    one = watch.seconds() / static_cast<double>(times);
  }
  std::ranges::sort(seconds);
  return seconds[2];
}

// Not within a graph: there an H200 copied at 2.7 TB/s, less than the 3.7 of one of our kernels
// (bench/results/gpu/h200-a2f39957-profile).
inline double copy_rate(Device& device) {
  DeviceBench bench(device);
  const Shape shape{std::int64_t{1} << (device.info().host_memory ? 25 : 28)};
  const TensorView from = bench.random(shape), to = bench.empty(shape);
  const double seconds = seconds_of(bench, [&](std::int64_t times) {
    for (std::int64_t i = 0; i < times; ++i) bench.stream().copy(to.data, from.data, from.bytes());
    bench.stream().synchronize();
  });
  return 2 * static_cast<double>(from.bytes()) / seconds;
}

// Four times as many rows as columns: what is spent on the weights alone counts little.
inline double product_rate(Device& device, Precision precision) {
  DeviceBench bench(device);
  const std::int64_t side = device.info().host_memory ? 1024 : 8192;
  const DType type = bench.kernels().activation_type(precision);
  const TensorView x = bench.random({4 * side, side}, type), y = bench.empty({4 * side, side}, type);
  const TensorView weights = bench.random({side, side});
  const auto product = bench.captured([&] {
    bench.kernels().dense_forward(bench.stream(), {x, weights, {}, y, Activation::kNone, precision});
  });
  const double seconds = seconds_of(bench, [&](std::int64_t times) { bench.launch(*product, times); });
  return 8 * static_cast<double>(side) * static_cast<double>(side) * static_cast<double>(side) / seconds;
}

inline Floors measure_floors(Device& device) {
  return {.bytes_per_second = copy_rate(device),
          .f32_flops = product_rate(device, Precision::kF32),
          .bf16_flops = product_rate(device, Precision::kBF16)};
}

}  // namespace headrace
