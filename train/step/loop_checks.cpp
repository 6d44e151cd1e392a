#include "headrace/train/step/loop_checks.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/train/layers.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/step/shards.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

// A replica may have several consecutive devices of a loader.
bool feeds(const DeviceGroup& from, const Strategy& strategy) {
  if (from.size() % strategy.local_replicas() != 0) return false;
  const int parts = from.size() / strategy.local_replicas();
  for (int i = 0; i < from.size(); ++i) {
    if (&from[i] != &strategy.device(i / parts)) return false;
  }
  return true;
}

void check_layers(const Graph& graph, const TrainerOptions& options) {
  for (int id = 0; id < graph.size() && options.step.virtual_shards > 0; ++id) {
    const Layer& layer = graph.layer(id);
    if (!layer.traits(Mode::kTrain).over_replicas) continue;
    throw ConfigError(
        label(layer.name(), layer.kind()) + " is synchronised: it needs all shards of a batch at once",
        "train without virtual shards, or leave it to each shard");
  }
}

const char* word_of(NanPolicy policy) {
  switch (policy) {
    case NanPolicy::kStop: return "stop";
    case NanPolicy::kIgnore: return "ignore";
    case NanPolicy::kTrace: return "trace";
  }
  return "";
}

void check_batch_counts(const TrainerOptions& options) {
  if (options.step.accumulate < 1 || options.in_flight < 0) {
    throw ConfigError("accumulate must be at least 1 and in_flight at least 0, got " +
                      std::to_string(options.step.accumulate) + " and " + std::to_string(options.in_flight));
  }
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
  const Shards shards(strategy, virtual_shards);
  if (loader.devices().size() != shards.local_shards()) {
    throw ConfigError(fmt::format("the loader divides its batches among {} replicas, the {} among {} shards",
                                  loader.devices().size(), what, shards.local_shards()),
                      "open it on the strategy's devices, each repeated() once for each of its virtual shards");
  }
  const World served = loader.world(), computed = shards.world();
  if (served != computed) {
    throw ConfigError(fmt::format("the loader serves replicas from {} on of {}, the {} has those from {} on of {}",
                                  served.first, served.total, what, computed.first, computed.total),
                      advice("leave {} as it is, or take the strategy's world()", named("LoaderOptions::world")));
  }
}

void add_value(NamedValues& values, std::string_view option, std::string value) {
  values.emplace_back(named_or(option, option.substr(option.rfind(':') + 1)), std::move(value));
}

NamedValues same_values(const StepOptions& step) {
  NamedValues values;
  add_value(values, "StepOptions::accumulate", std::to_string(step.accumulate));
  add_value(values, "StepOptions::virtual_shards", std::to_string(step.virtual_shards));
  add_value(values, "StepOptions::nan", word_of(step.nan));
  add_value(values, "StepOptions::mirror_check_every", std::to_string(step.mirror_check_every));
  add_value(values, "StepOptions::gradient_norms", step.gradient_norms ? "on" : "off");
  return values;
}

void check_training(Strategy& strategy, const Model& model, const Loader& loader, const TrainerOptions& options) {
  check_model(strategy, model, "training");
  check_loader(strategy, loader, options.step.virtual_shards, "training");
  check_layers(model.graph(), options);
  check_batch_counts(options);
  if (!strategy.workers()) return;
  NamedValues values = same_values(options.step);
  add_value(values, "TrainerOptions::seed", std::to_string(options.seed));
  add_value(values, "TrainerOptions::first_step",
            std::to_string(options.first_step.value_or(model.global_step())));
  require_same(*strategy.workers(), "a trainer", values);
}

std::int64_t StepOrder::forward(std::int64_t examples) {
  if (done_ == Done::kAllReduce) {
    throw ConfigError("the gradients were summed and not used", "call apply_gradients() before the next batch");
  }
  if (done_ == Done::kBackward && !accumulates_) {
    throw ConfigError(
        "a second batch before all_reduce() would overwrite the gradients",
        joined({advice("set {} to the batches of a step: they are then added", named("StepOptions::accumulate")),
                "call discard_gradients()"},
               "; or "));
  }
  done_ = Done::kForward;
  with_last_ = examples_ + examples;
  return with_last_;
}

void StepOrder::backward() {
  if (done_ != Done::kForward) throw ConfigError("backward() needs a forward() before it, one each");
  done_ = Done::kBackward;
  examples_ = with_last_;
}

void StepOrder::all_reduce() {
  if (done_ == Done::kForward) throw ConfigError("all_reduce() after a forward() without its backward()");
  if (done_ != Done::kBackward) throw ConfigError("all_reduce() without gradients", "call gradients() first");
  done_ = Done::kAllReduce;
}

void StepOrder::apply_gradients() {
  if (done_ != Done::kAllReduce) {
    throw ConfigError(
        "apply_gradients() before all_reduce(): the replicas' gradients are not summed yet, and "
        "their weights would part",
        "call all_reduce() first, with one replica too");
  }
  discard_gradients();
}

void StepOrder::discard_gradients() noexcept {
  done_ = Done::kNothing;
  examples_ = 0;
}

void StepOrder::whole() const {
  if (done_ == Done::kNothing || (done_ == Done::kForward && examples_ == 0)) return;
  throw ConfigError("step() while the gradients of batches before it are not used yet",
                    "call all_reduce() and apply_gradients() first");
}

}  // namespace headrace
