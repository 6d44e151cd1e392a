#include "headrace/tools/options/worker_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/registry.h"
#include "headrace/tools/options/options.h"

namespace headrace::tools {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::size_t visible_gpus() {
  for (const Backend* backend : backends()) {
    if (backend->name() == std::string_view("cuda")) return backend->list().size();
  }
  return 0;
}

}  // namespace

void WorkerFlags::add_to(CLI::App& command) {
  add_number(command, "--worker-start-timeout", limits.start_timeout_seconds,
             "seconds for all workers to start, if a launcher started several", {.min = 1, .max = 1e6})
      ->capture_default_str();
  add_number(command, "--worker-call-timeout", limits.call_timeout_seconds,
             "seconds that a worker waits for the others to reach the same step", {.min = 1, .max = 1e6})
      ->capture_default_str();
}

std::shared_ptr<Workers> WorkerFlags::open() const {
  if (standalone) return nullptr;
  std::shared_ptr<Workers> workers = open_world(limits);
  if (workers) share_cores(*workers);
  return workers;
}

std::string devices_of_worker(const std::string& devices, Workers* workers) {
  const bool chosen = devices == "auto" ? !variable("HEADRACE_DEVICES").empty() : devices != "cuda";
  if (workers == nullptr || chosen) return devices;
  const std::size_t gpus = visible_gpus();
  const std::string seen = fmt::format("{} of '{}'", gpus, variable("CUDA_VISIBLE_DEVICES"));
  const std::vector<std::string> all = workers->all_gather(seen);
  std::size_t sharing = 0, before = 0;
  for (int rank = 0; rank < workers->count(); ++rank) {
    const bool here = workers->at(rank).host == workers->at(workers->rank()).host;
    if (!here || all[static_cast<std::size_t>(rank)] != seen) continue;
    if (rank < workers->rank()) ++before;
    ++sharing;
  }
  if (gpus == 0 || sharing == 1) return devices;
  if (gpus % sharing != 0) {
    throw ConfigError(fmt::format("{} workers on {} share {} GPUs", sharing, workers->at(workers->rank()).host, gpus),
                      "start as many workers on a host as it has GPUs, or say by --devices which each takes");
  }
  std::string list = "cuda:";
  const std::size_t each = gpus / sharing;
  for (std::size_t i = before * each; i < (before + 1) * each; ++i) {
    list += fmt::format("{}{}", i > before * each ? "," : "", i);
  }
  return list;
}

}  // namespace headrace::tools
