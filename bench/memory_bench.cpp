// What memory alone allows `cifar-train`, on one core; `headrace bench input --pipeline cifar-train --baseline`
// measures the same in turn with the engine.
#include <benchmark/benchmark.h>

#include "headrace/tools/pipelines/memory_traffic.h"

namespace headrace {
namespace {

void cifar_traffic(benchmark::State& state) {
  const tools::CifarTraffic traffic;
  tools::CifarTraffic::Lane lane(traffic, 0);
  for (auto _ : state) lane.move_image();
  state.counters["images_per_second"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(cifar_traffic)->UseRealTime()->Repetitions(5)->ReportAggregatesOnly(true);

}  // namespace
}  // namespace headrace

BENCHMARK_MAIN();
