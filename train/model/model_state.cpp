#include "headrace/train/model/model_state.h"

#include "headrace/devices/base/error.h"

namespace headrace {

ModelState::ModelState(Strategy& owner, std::unique_ptr<const Graph> net, std::uint64_t seed)
    : strategy(&owner), graph(std::move(net)), layout(*graph), variables(owner, layout, seed) {}

const CompileOptions& ModelState::require_compiled(const char* what) const {
  if (compiled) return *compiled;
  throw ConfigError(std::string(what) + " needs a compiled model", "call model.compile({...}) first");
}

void ModelState::require_compilation(std::uint64_t compilation, const std::string& what) const {
  if (compilation == compilations) return;
  throw ConfigError("the model was compiled since this " + what + " was prepared", "prepare it after compile()");
}

void ModelState::require_frozen_as_compiled() const {
  for (const Variable& variable : layout.variables()) {
    if (variable.frozen == frozen.contains(variable.name)) continue;
    throw ConfigError("variable '" + variable.name + "' was " + (variable.frozen ? "unfrozen" : "frozen") +
                          " after compile(), which decides what is trained",
                      "call model.compile({...}) again");
  }
}

std::vector<double> ModelState::learning_rates() const {
  const Optimizer& rule = require_compiled("a learning rate").optimizer;
  std::vector<double> rates{learning_rate_scale * rule.learning_rate.at(step)};
  for (const ParameterGroup& group : rule.groups) {
    rates.push_back(learning_rate_scale * group.learning_rate.at(step));
  }
  return rates;
}

}  // namespace headrace
