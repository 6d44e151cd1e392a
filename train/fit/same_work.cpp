#include "headrace/train/fit/same_work.h"

#include <fmt/format.h>

#include <ranges>

#include "headrace/devices/base/hash.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/records/record.h"
#include "headrace/train/records/record_json.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

constexpr std::size_t kMaxShown = 200;  // longer texts are named by their hashes

void require_equal_text(Workers& workers, const std::string& what, const std::string& text) {
  workers.require_equal(what, text.size() <= kMaxShown ? text : "hash " + to_hex(xxh3(text)));
}

// The first stage says where the data lie, which may be elsewhere on each host.
void require_equal_data(Workers& workers, const std::string& what, const DataIdentity& data) {
  std::string stages;
  for (const std::string& stage : data.stages | std::views::drop(1)) stages += stage + "; ";
  require_equal_text(workers, what, fmt::format("{}fingerprint {}", stages, to_hex(data.fingerprint)));
}

// Returns what the bits of a device's results depend on: "AVX-512", "sm_90" (DeviceInfo::description).
std::string instruction_set(const Strategy& strategy) {
  const std::string& description = strategy.device(0).info().description;
  const std::size_t comma = description.rfind(", ");
  return comma == std::string::npos ? description : description.substr(comma + 2);
}

}  // namespace

void require_same_work(Workers& workers, const Model& model, const FitOptions& options, const SharedWork& work) {
  workers.require_equal("processors", instruction_set(model.strategy()));
  require_equal_data(workers, "data", work.data);
  require_equal_data(workers, "validation", work.validation.value_or(DataIdentity{}));
  workers.require_equal(
      "options", fmt::format("{} epochs of {} steps, stop after {}, accumulate {}, {} virtual shards, seed {}",
                             options.epochs, work.steps, options.stop_after_steps, options.step.accumulate,
                             options.step.virtual_shards, options.input.seed));
  workers.require_equal("checkpoints", !options.checkpoints ? "none"
                                                            : fmt::format("every {} steps, best by '{}'",
                                                                          options.checkpoints->every_steps,
                                                                          options.checkpoints->best));
  workers.require_equal("callbacks", work.exact_steps);
  for (const auto& [name, text] : model_texts(model.state(), {})) {
    const record_json::Json parts = record_json::parse(text);
    for (const auto& [part, value] : parts.items()) {
      require_equal_text(workers, fmt::format("model ({}, {})", name, part), value.dump());
    }
  }
  workers.require_equal("position", fmt::format("step {}, {}", model.global_step(), work.position.serialize()));
  workers.require_equal("variables", model.weights_sha256());
}

}  // namespace headrace
