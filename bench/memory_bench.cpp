// What memory alone allows, and how far apart two processors are.
#include <benchmark/benchmark.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "headrace/tools/pipelines/baseline.h"

namespace headrace {
namespace {

// Reads and writes what `cifar-train` does, on one core; `headrace bench input --pipeline cifar-train --baseline`
// measures the same in turn with the engine.
void cifar_traffic(benchmark::State& state) {
  const tools::CifarTraffic traffic;
  tools::CifarTraffic::Lane lane(traffic, 0);
  for (auto _ : state) lane.move_image();
  state.counters["images_per_second"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(cifar_traffic)->UseRealTime()->Repetitions(5)->ReportAggregatesOnly(true);

// A cache line goes to another processor and comes back. A virtual machine's processors may be moved while it
// runs.
void round_trip(benchmark::State& state) {
  enum Holder : std::uint8_t { kHere, kThere, kNobody };
  std::atomic<Holder> holder{kHere};
  std::thread other([&holder] {
    for (Holder seen = kHere; seen != kNobody; seen = holder.load(std::memory_order_acquire)) {
      if (seen == kThere) holder.store(kHere, std::memory_order_release);
      __builtin_ia32_pause();
    }
  });
  for (auto _ : state) {
    holder.store(kThere, std::memory_order_release);
    while (holder.load(std::memory_order_acquire) != kHere) __builtin_ia32_pause();
  }
  holder.store(kNobody, std::memory_order_release);
  other.join();
}
BENCHMARK(round_trip)->UseRealTime();

}  // namespace
}  // namespace headrace

BENCHMARK_MAIN();
