// Divides a host's cores and GPUs among its workers.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
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

// The workers of this one's host that have the same to share.
struct Sharing {
  std::size_t count = 0, before = 0;  // all of them; those of lower ranks
};

// All workers make the call.
Sharing workers_sharing(Workers& workers, const std::string& what) {
  const std::vector<std::string> all = workers.all_gather(what);
  Sharing sharing;
  for (int rank = 0; rank < workers.count(); ++rank) {
    const bool here = workers.at(rank).host == workers.at(workers.rank()).host;
    if (!here || all[static_cast<std::size_t>(rank)] != what) continue;
    if (rank < workers.rank()) ++sharing.before;
    ++sharing.count;
  }
  return sharing;
}

std::vector<int> allowed_cores() {
  cpu_set_t allowed;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  return cores;
}

std::string to_text(const std::vector<int>& cores) {
  std::string text;
  for (const int core : cores) text += std::to_string(core) + " ";
  return text;
}

}  // namespace

std::string devices_of_worker(const std::string& spec, Workers* workers) {
  if (workers == nullptr) return spec;
  const std::size_t gpus = is_open(spec) ? visible_gpus() : 0;
  const std::string seen = fmt::format("{} of '{}'", gpus, value_of_variable("CUDA_VISIBLE_DEVICES"));
  const auto [sharing, before] = workers_sharing(*workers, seen);
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

void share_cores(Workers& workers) {
  const std::vector<int> cores = allowed_cores();
  const auto [sharing, before] = workers_sharing(workers, to_text(cores));
  if (sharing < 2 || cores.empty()) return;
  const std::size_t begin = cores.size() * before / sharing, end = cores.size() * (before + 1) / sharing;
  cpu_set_t mine;
  CPU_ZERO(&mine);
  for (std::size_t i = begin; i < std::max(begin + 1, end); ++i) CPU_SET(cores[i], &mine);
  sched_setaffinity(0, sizeof mine, &mine);
}

}  // namespace headrace
