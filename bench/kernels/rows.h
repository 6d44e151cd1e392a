// The rows of kernels_bench: one file a kind. A row's `roofline` is its share of a floor of the device
// (bench/floors.h).
#pragma once

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "headrace/bench/device_bench.h"
#include "headrace/bench/floors.h"
#include "headrace/devices/kernels.h"

namespace headrace {

// Outlives the rows that are added with it.
struct Target {
  DeviceGroup devices;
  Floors floors;

  Device& device() const { return devices[0]; }
  bool on_host() const { return device().info().host_memory; }
  // Images of a batch: a GPU's cache must not hold them.
  std::int64_t images() const { return on_host() ? 128 : 2000; }
};

enum class Pass { kForward, kBackwardData, kBackwardWeights };
constexpr const char* kPassNames[] = {"forward", "backward_data", "backward_weights"};

// The images on which memory-bound kernels are measured: kSide x kSide images of kChannels channels.
constexpr std::int64_t kSide = 32, kChannels = 64;

inline Shape images_of(const Target& target, std::int64_t side) {
  return {target.images(), side, side, kChannels};
}
inline double bytes_of(const Target& target, DType type) {
  return static_cast<double>(size_of(type)) * static_cast<double>(images_of(target, kSide).elements());
}

inline const char* name_of(Precision precision) { return precision == Precision::kF32 ? "f32" : "bf16"; }
// Returns the suffix of a row's name: rows that exist in both types mark those in bf16.
inline const char* suffix_of(DType type) { return type == DType::kF32 ? "" : "_bf16"; }

inline void count(benchmark::State& state, const char* unit, double work, double floor) {
  state.counters[unit] = benchmark::Counter(work / 1e9, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["roofline"] = benchmark::Counter(work / floor, benchmark::Counter::kIsIterationInvariantRate);
}
inline void count_flops(benchmark::State& state, const Target& target, double flops, Precision precision) {
  count(state, "GFLOP/s", flops, target.floors.flops(precision));
}
inline void count_bytes(benchmark::State& state, const Target& target, double bytes) {
  count(state, "GB/s", bytes, target.floors.bytes_per_second);
}

template <typename Function>
benchmark::internal::Benchmark* add(const std::string& name, Function function) {
  return benchmark::RegisterBenchmark(name.c_str(), function)->UseRealTime();
}

void add_products(const Target& target);     // convolutions and dense layers
void add_epilogues(const Target& target);    // what a product costs with a bias and an activation; whitening
void add_activations(const Target& target);  // elementwise, pooling, views
void add_norms(const Target& target);        // batch normalisation, with what is fused into it
void add_updates(const Target& target);      // optimizers
void add_whole_steps(const Target& target);  // a small training step

}  // namespace headrace
