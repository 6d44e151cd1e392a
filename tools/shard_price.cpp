#include "headrace/tools/shard_price.h"

#include <algorithm>
#include <limits>

#include "headrace/devices/base/clock.h"
#include "headrace/train/strategy.h"
#include "headrace/train/trainer.h"

namespace headrace::tools {
namespace {

constexpr int kMaxSteps = 10;
constexpr double kMaxSeconds = 1;

double step_seconds(Model& model, const Dataset& data, const FitOptions& fit, int virtual_shards) {
  Strategy& strategy = model.strategy();
  const int replicas = strategy.replicas();
  DeviceGroup shards = strategy.devices().repeated(std::max(1, virtual_shards / replicas));
  LoaderOptions input = fit.input;
  input.trace = nullptr;
  Loader loader(data, shards, input);
  Trainer trainer(strategy, model, loader, {.accumulate = fit.accumulate, .virtual_shards = virtual_shards});
  trainer.warm_up();  // memory is touched for the first time
  double shortest = std::numeric_limits<double>::max();
  const Stopwatch all;
  for (int i = 0; i < kMaxSteps && (i == 0 || all.seconds() < kMaxSeconds); ++i) {
    const Stopwatch one;
    trainer.warm_up();
    shortest = std::min(shortest, one.seconds());
  }
  return shortest;
}

}  // namespace

double shard_price(Model& model, const Dataset& data, const FitOptions& fit) {
  const double plain = step_seconds(model, data, fit, 0);
  return step_seconds(model, data, fit, fit.virtual_shards) / plain;
}

}  // namespace headrace::tools
