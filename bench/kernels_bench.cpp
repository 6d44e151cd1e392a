// The mathematics of one device: GFLOP/s of products, GB/s of what memory bounds, steps/s of a whole small
// training step (bench/kernels/, bf16 before f32). The device is that of --device=SPEC or $HEADRACE_DEVICES, else
// one CPU replica. The counter `roofline` is the share of the floor that was measured first (bench/floors.h; the
// context names it): of the large product for arithmetic, of the large copy for memory. It is above 1 where
// tensors stay in a cache.
//
//   --floors=GB/s,GFLOP/s,GFLOP/s   of copies and of products in f32 and bf16, as another process measured them
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <string>

#include "headrace/bench/device_bench.h"
#include "headrace/bench/floors.h"
#include "headrace/bench/kernels/rows.h"
#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

Floors parse_floors(const std::string& text) {
  Floors floors;
  int end = 0;
  const int read = std::sscanf(text.c_str(), "%lf,%lf,%lf%n", &floors.bytes_per_second, &floors.f32_flops,
                               &floors.bf16_flops, &end);
  if (read != 3 || static_cast<std::size_t>(end) != text.size() || !(floors.bytes_per_second > 0) ||
      !(floors.f32_flops > 0) || !(floors.bf16_flops > 0)) {
    throw ConfigError("--floors=" + text + " is not three positive numbers",
                      "write --floors=4300.0,50000.0,790000.0");
  }
  return {.bytes_per_second = 1e9 * floors.bytes_per_second,
          .f32_flops = 1e9 * floors.f32_flops,
          .bf16_flops = 1e9 * floors.bf16_flops};
}

void run(const std::string& spec, const std::optional<std::string>& floors) {
  Target target{.devices = open_devices(spec), .floors = {}};
  target.floors = floors ? parse_floors(*floors) : measure_floors(target.device());
  benchmark::AddCustomContext("device", target.device().info().name + ", " + target.device().info().description);
  benchmark::AddCustomContext("floor_gb_per_s", fmt::format("{:.1f}", target.floors.bytes_per_second / 1e9));
  benchmark::AddCustomContext("floor_f32_gflop_per_s", fmt::format("{:.1f}", target.floors.f32_flops / 1e9));
  benchmark::AddCustomContext("floor_bf16_gflop_per_s", fmt::format("{:.1f}", target.floors.bf16_flops / 1e9));
  add_products(target);
  add_epilogues(target);
  add_activations(target);
  add_norms(target);
  add_updates(target);
  add_whole_steps(target);
  benchmark::RunSpecifiedBenchmarks();
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  const std::string device = headrace::take_device_flag(argc, argv);
  const std::optional<std::string> floors = headrace::take_flag(argc, argv, "--floors=");
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  try {
    headrace::run(device, floors);
  } catch (const headrace::Error& error) {
    fmt::print(stderr, "kernels_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
