#include <fmt/format.h>
#include <sched.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/hash.h"
#include "headrace/devices/base/shared_module.h"
#include "headrace/devices/common/backend_module.h"
#include "headrace/devices/registry.h"
#include "headrace/devices/workers.h"
#include "headrace/devices/workers/transport.h"

namespace headrace {
namespace {

// Everything that decides whether two processes compute and exchange the same.
constexpr const char* kBuild = "Headrace " HEADRACE_VERSION ", compiled by " __VERSION__;

const WorkerModule& load_module() {
  const char* named = std::getenv("HEADRACE_WORKERS_MODULE");
  const auto override_path =
      named == nullptr || *named == '\0' ? std::nullopt : std::optional<std::filesystem::path>(named);
  std::string why = "libheadrace_workers.so was not found beside the program";
  for (const auto& path : module_candidates("libheadrace_workers.so", override_path)) {
    if (!std::filesystem::exists(path)) continue;
    const SharedModule opened = open_shared_module(path, kWorkerModuleEntryName);
    if (opened.entry == nullptr) {
      why = opened.missing;
      break;
    }
    if (const auto* module = reinterpret_cast<WorkerModuleEntry>(opened.entry)(kWorkerAbiVersion)) return *module;
    why = path.string() + " is from another build of Headrace";
    break;
  }
  throw ConfigError("several workers need Headrace's module for them: " + why,
                    "build with -DHEADRACE_WORKERS=on, or name the file in HEADRACE_WORKERS_MODULE");
}

// Returns "0 to 3, 5".
std::string list_ranks(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", ranks[i]);
    if (end - i > 1) text += fmt::format("{}{}", end - i > 2 ? " to " : ", ", ranks[end - 1]);
    i = end;
  }
  return text;
}

}  // namespace

Workers::Workers(std::unique_ptr<WorkerTransport> transport, const WorkerOptions& options)
    : transport_(std::move(transport)), options_(options) {}

Workers::~Workers() = default;

int Workers::rank() const noexcept { return transport_->rank(); }

int Workers::count() const noexcept { return static_cast<int>(transport_->members().size()); }

const WorkerInfo& Workers::at(int rank) const { return transport_->members().at(static_cast<std::size_t>(rank)); }

const WorkerOptions& Workers::options() const noexcept { return options_; }
const WorkerFact& Workers::transport() const noexcept { return transport_->transport(); }

std::vector<std::string> Workers::all_gather(std::string_view mine, std::string_view what) {
  return transport_->all_gather(mine, what);
}

void Workers::all_reduce_sum(std::span<float> values) {
  if (!values.empty()) transport_->all_reduce_sum(values.data(), values.size());
}

void Workers::broadcast(std::span<std::byte> bytes, int root) {
  if (root < 0 || root >= count()) {
    throw ConfigError(fmt::format("broadcast from worker {} in a world of {}", root, count()));
  }
  if (!bytes.empty()) transport_->broadcast(bytes.data(), bytes.size(), root);
}

void Workers::require_equal(const std::string& what, const std::string& value) {
  require_equal_values(what, all_gather(value, what));
}

void require_same(Workers& workers, const std::string& what, const NamedValues& values) {
  constexpr const char* kNone = "none";
  constexpr std::size_t kMaxShown = 200;  // longer texts are named by their hashes
  NamedValues mine = values;
  for (auto& [name, value] : mine) {
    if (value.size() > kMaxShown) value = "hash " + to_hex(xxh3(value));
  }
  std::vector<std::map<std::string, std::string>> by_rank;
  std::vector<std::string> names;
  for (const std::string& said : workers.all_gather(
           nlohmann::json(mine).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), what)) {
    std::map<std::string, std::string>& theirs = by_rank.emplace_back();
    for (const auto& [name, value] : nlohmann::json::parse(said).get<NamedValues>()) {
      theirs[name] = value;
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  for (const std::string& name : names) {
    std::vector<std::string> all;
    for (const auto& said : by_rank) all.push_back(said.contains(name) ? said.at(name) : kNone);
    require_equal_values(name, all);
  }
}

void require_equal_values(const std::string& what, const std::vector<std::string>& values) {
  std::map<std::string, std::vector<int>> groups;
  for (std::size_t rank = 0; rank < values.size(); ++rank) groups[values[rank]].push_back(static_cast<int>(rank));
  if (groups.size() == 1) return;
  std::string text;
  for (const auto& [said, ranks] : groups) {
    text += fmt::format("{}{} of worker{} {}", text.empty() ? "" : ", ", said, ranks.size() == 1 ? "" : "s",
                        list_ranks(ranks));
  }
  throw WorkersDiffer(fmt::format("the workers differ in their {}: {}", what, text),
                      "start all workers with the same program, options and data");
}

void Workers::set_moment(std::string moment) { transport_->set_moment(std::move(moment)); }

void Workers::sign_off() noexcept { transport_->sign_off(); }

void Workers::abort(const std::string& reason) noexcept { transport_->abort(reason); }

std::string Workers::failure() const { return transport_->failure(); }

std::shared_ptr<Workers> open_world(const WorkerPlan& plan, const WorkerOptions& options) {
  if (plan.alone()) return nullptr;
  if (!(options.start_timeout_seconds > 0) || !(options.call_timeout_seconds > 0)) {
    throw ConfigError("the workers' time limits must be above 0 s");
  }
  WorkerPlan listening = plan;
  if (!options.listen.empty()) listening.guard.listen = options.listen;
  return std::make_shared<Workers>(load_module().join(listening, options, kBuild), options);
}

std::shared_ptr<Workers> open_world(const WorkerOptions& options) { return open_world(plan_workers(), options); }

// Divides a host's cores and GPUs among its workers.

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
