#include "headrace/train/engine/model_state.h"

#include "headrace/devices/base/error.h"

namespace headrace {

ModelState::ModelState(Strategy& owner, std::unique_ptr<const Graph> net, std::uint64_t seed)
    : strategy(&owner), graph(std::move(net)), layout(*graph), variables(owner, layout, seed) {}

const CompileOptions& ModelState::require_compiled(const char* what) const {
  if (compiled) return *compiled;
  throw ConfigError(std::string(what) + " needs a compiled model", "call model.compile({...}) first");
}

}  // namespace headrace
