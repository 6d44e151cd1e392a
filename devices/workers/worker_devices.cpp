// Divides a host's GPUs among its workers.
#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/registry.h"
#include "headrace/devices/workers.h"

namespace headrace {
namespace {

std::string_view value_of_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

std::size_t visible_gpus() {
  for (const Backend* backend : backends()) {
    if (backend->name() == std::string_view("cuda")) return backend->list().size();
  }
  return 0;
}

// Returns whether the spec leaves the choice of devices to the machine.
bool is_open(std::string_view spec) {
  return spec == "cuda" || (spec == "auto" && value_of_variable("HEADRACE_DEVICES").empty());
}

}  // namespace

std::string devices_of_worker(const std::string& spec, Workers* workers) {
  if (workers == nullptr) return spec;
  const std::size_t gpus = is_open(spec) ? visible_gpus() : 0;
  const std::string seen = fmt::format("{} of '{}'", gpus, value_of_variable("CUDA_VISIBLE_DEVICES"));
  const std::vector<std::string> all = workers->all_gather(seen);
  std::size_t sharing = 0, before = 0;
  for (int rank = 0; rank < workers->count(); ++rank) {
    const bool here = workers->at(rank).host == workers->at(workers->rank()).host;
    if (!here || all[static_cast<std::size_t>(rank)] != seen) continue;
    if (rank < workers->rank()) ++before;
    ++sharing;
  }
  if (gpus == 0 || sharing == 1) return spec;
  if (gpus % sharing != 0) {
    throw ConfigError(
        fmt::format("{} workers on {} share {} GPUs", sharing, workers->at(workers->rank()).host, gpus),
        "start as many workers on a host as it has GPUs, or name the devices of each, as cuda:0");
  }
  std::string list = "cuda:";
  const std::size_t each = gpus / sharing;
  for (std::size_t i = before * each; i < (before + 1) * each; ++i) {
    list += fmt::format("{}{}", i > before * each ? "," : "", i);
  }
  return list;
}

}  // namespace headrace
