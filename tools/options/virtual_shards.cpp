#include "headrace/tools/options/virtual_shards.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <limits>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/kernels.h"
#include "headrace/tools/options/options.h"
#include "headrace/train/strategy.h"
#include "headrace/train/trainer.h"

namespace headrace::tools {
namespace {

constexpr int kUsualShards = 8;
constexpr int kTimedSteps = 10;
constexpr double kTimedSeconds = 0.4;
// With and without in turn: beside other load OpenMP's threads need a while to find out how to wait.
constexpr int kRounds = 4;
constexpr double kRoundsSeconds = 4;  // no further round begins after these

double step_seconds(Model& model, const Dataset& data, const FitOptions& fit, int virtual_shards) {
  Strategy& strategy = model.strategy();
  const int each = std::max(1, virtual_shards / strategy.world_replicas());
  DeviceGroup shards = strategy.devices().repeated(each);
  LoaderOptions input = fit.input;
  input.world = strategy.world().repeated(each);
  input.trace = nullptr;
  Loader loader(data, shards, input);
  Trainer trainer(strategy, model, loader,
                  {.step = {.accumulate = fit.step.accumulate, .virtual_shards = virtual_shards}});
  trainer.warm_up();  // memory is touched for the first time
  double shortest = std::numeric_limits<double>::max();
  const Stopwatch all;
  for (int i = 0; i < kTimedSteps && (i == 0 || all.seconds() < kTimedSeconds); ++i) {
    const Stopwatch one;
    trainer.warm_up();
    shortest = std::min(shortest, one.seconds());
  }
  return shortest;
}

}  // namespace

void ShardOptions::add_to(CLI::App& command) {
  command.add_flag("--deterministic", deterministic,
                   "the same result with 1, 2, 4 or 8 replicas: each batch is divided into 8 virtual shards");
  add_number(command, "--virtual-shards", virtual_shards,
             "the same with this many shards, a power of two: the maximum number of replicas",
             {.min = 1, .max = Kernels::kMaxSummed});
}

int ShardOptions::count() const noexcept {
  if (virtual_shards > 0) return static_cast<int>(virtual_shards);
  return deterministic ? kUsualShards : 0;
}

double shard_price(Model& model, const Dataset& data, const FitOptions& fit) {
  double plain = std::numeric_limits<double>::max(), sharded = plain;
  const Stopwatch all;
  for (int round = 0; round < kRounds && (round == 0 || all.seconds() < kRoundsSeconds); ++round) {
    plain = std::min(plain, step_seconds(model, data, fit, 0));
    sharded = std::min(sharded, step_seconds(model, data, fit, fit.step.virtual_shards));
  }
  return sharded / plain;
}

}  // namespace headrace::tools
