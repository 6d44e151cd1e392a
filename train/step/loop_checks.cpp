#include "headrace/train/step/loop_checks.h"

#include <fmt/format.h>

#include "headrace/devices/base/error.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/step/shards.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

// A replica may have several of a loader's devices, in a row.
bool feeds(const DeviceGroup& from, const Strategy& strategy) {
  if (from.size() % strategy.replicas() != 0) return false;
  const int parts = from.size() / strategy.replicas();
  for (int i = 0; i < from.size(); ++i) {
    if (&from[i] != &strategy.device(i / parts)) return false;
  }
  return true;
}

}  // namespace

void check_model(const Strategy& strategy, const Model& model, const char* what) {
  if (&strategy != &model.strategy()) {
    throw ConfigError("the model belongs to another strategy (" + model.strategy().to_string() + ")",
                      "build it with the strategy that trains it");
  }
  model.state().require_compiled(what);
}

void check_loader(Strategy& strategy, const Loader& loader, int virtual_shards, const char* what) {
  if (!feeds(loader.devices(), strategy)) {
    throw ConfigError("the loader's batches are on other devices (" + loader.devices().to_string() +
                          ") than the strategy's (" + strategy.devices().to_string() + ")",
                      "make the loader with the devices that the strategy was made with");
  }
  if (const int shards = Shards(strategy, virtual_shards).size(); loader.devices().size() != shards) {
    throw ConfigError(fmt::format("the loader divides its batches among {} replicas, the {} among {} shards",
                                  loader.devices().size(), what, shards),
                      "open it on the strategy's devices, each repeated() once for each of its virtual shards");
  }
}

}  // namespace headrace
