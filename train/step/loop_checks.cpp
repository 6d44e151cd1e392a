#include "headrace/train/step/loop_checks.h"

#include "headrace/devices/base/error.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

// A replica may have several of a loader's devices, in a row.
bool feeds(const DeviceGroup& from, const Strategy& strategy) {
  if (from.size() % strategy.local_replicas() != 0) return false;
  const int parts = from.size() / strategy.local_replicas();
  for (int i = 0; i < from.size(); ++i) {
    if (&from[i] != &strategy.device(i / parts)) return false;
  }
  return true;
}

}  // namespace

void check_loop(const Strategy& strategy, const Model& model, const Loader& loader, const char* what) {
  if (&strategy != &model.strategy()) {
    throw ConfigError("the model belongs to another strategy (" + model.strategy().to_string() + ")",
                      "build it with the strategy that trains it");
  }
  model.state().require_compiled(what);
  if (!feeds(loader.devices(), strategy)) {
    throw ConfigError("the loader's batches are on other devices (" + loader.devices().to_string() +
                          ") than the strategy's (" + strategy.devices().to_string() + ")",
                      "make the loader with the devices that the strategy was made with");
  }
}

}  // namespace headrace
