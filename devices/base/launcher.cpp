#include "headrace/devices/base/launcher.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/text.h"

namespace headrace {
namespace {

// A row of the table. Unused variables are null.
struct Launcher {
  const char* name;
  const char* rank;
  std::array<const char*, 4> sizes;  // the first one set counts
  bool own_size = true;  // else the sizes are those of other launchers, which use it to start processes
  std::array<const char*, 4> others = {};  // which it sets besides
};

// The innermost launcher comes first: torchrun within Slurm describes this process, Slurm describes torchrun.
constexpr std::array kLaunchers = {
    Launcher{.name = "torchrun",
             .rank = "RANK",
             .sizes = {"WORLD_SIZE"},
             .others = {"MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}},
    Launcher{.name = "Open MPI",
             .rank = "OMPI_COMM_WORLD_RANK",
             .sizes = {"OMPI_COMM_WORLD_SIZE"},
             .others = {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"}},
    Launcher{.name = "MVAPICH2",
             .rank = "MV2_COMM_WORLD_RANK",
             .sizes = {"MV2_COMM_WORLD_SIZE"},
             .others = {"MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"}},
    Launcher{.name = "MPI",
             .rank = "PMI_RANK",
             .sizes = {"PMI_SIZE"},
             .others = {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"}},
    Launcher{.name = "PMIx",
             .rank = "PMIX_RANK",
             .sizes = {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"},
             .own_size = false},
    Launcher{.name = "Slurm",
             .rank = "SLURM_PROCID",
             .sizes = {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"},
             .others = {"SLURM_STEP_ID", "SLURM_STEPID", "SLURM_LOCALID"}},
    // Sets only the index; the pod's template must pass the number.
    Launcher{.name = "Kubernetes", .rank = "JOB_COMPLETION_INDEX", .sizes = {"JOB_COMPLETIONS"}},
};

struct Variable {
  const char* name = nullptr;
  std::string_view value = {};

  bool set() const noexcept { return !value.empty(); }
  std::string said() const { return fmt::format("{}={}", name, value); }
};

Variable read(const Environment& environment, const char* name) {
  const char* value = name == nullptr ? nullptr : environment(name);
  return {.name = name, .value = value == nullptr ? "" : value};
}

[[noreturn]] void unreadable(const Variable& variable, const std::string& why) {
  constexpr std::size_t kMaxShown = 120;
  const bool whole = variable.value.size() <= kMaxShown;
  throw ConfigError(
      fmt::format("{} is '{}{}': {}", variable.name, variable.value.substr(0, kMaxShown), whole ? "" : "...", why),
      fmt::format("unset {}, or have the launcher set it", variable.name));
}

// Returns the variable's integer in [min, max].
std::int64_t number_of(const Variable& variable, std::int64_t min, std::int64_t max, const std::string& range) {
  std::int64_t number = 0;
  const char* const end = variable.value.data() + variable.value.size();
  const auto [rest, error] = std::from_chars(variable.value.data(), end, number);
  if (error != std::errc() || rest != end || number < min || number > max) {
    unreadable(variable, "it must be a whole number " + range);
  }
  return number;
}

constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();

std::int64_t size_of(const Variable& variable) { return number_of(variable, 1, kNoEnd, "of at least 1"); }

std::int64_t rank_of(const Variable& variable, const Variable& size) {
  if (!size.set()) return number_of(variable, 0, kNoEnd, "of at least 0");
  const std::int64_t workers = size_of(size);
  return number_of(variable, 0, workers - 1, fmt::format("from 0 to {}, as {}", workers - 1, size.said()));
}

// Returns whether this is a shell of salloc or a script of sbatch: they see the variables of the tasks that srun
// may start, but are no such task.
bool is_allocation_of_slurm(const Environment& environment) {
  const auto set = [&](const char* name) { return read(environment, name).set(); };
  if (!set("SLURM_JOB_ID") || set("SLURM_STEP_ID") || set("SLURM_STEPID") || set("SLURM_STEP_NUM_TASKS"))
    return false;
  const Variable rank = read(environment, "SLURM_PROCID");
  return !rank.set() || rank.value == "0";
}

std::optional<LaunchedProcess> process_of(const Launcher& launcher, const Environment& environment) {
  const Variable rank = read(environment, launcher.rank);
  const bool slurm = std::string_view(launcher.name) == "Slurm";
  if (slurm && is_allocation_of_slurm(environment)) return std::nullopt;
  Variable size;
  for (const char* name : launcher.sizes) {
    if (!size.set()) size = read(environment, name);
  }
  if (!rank.set() && !(launcher.own_size && size.set())) return std::nullopt;
  LaunchedProcess process{.launcher = launcher.name};
  if (rank.set()) process.rank = rank_of(rank, size);
  if (size.set()) process.workers = size_of(size);
  process.said = rank.set() && size.set() ? rank.said() + ", " + size.said()
                 : rank.set()             ? rank.said()
                                          : size.said();
  if (!size.set() && launcher.own_size) process.missing = launcher.sizes.front();
  return process;
}

// The jobs that train together; an evaluator is not among them.
const std::vector<std::string> kJobs{"chief", "master", "worker", "ps"};
const std::vector<std::string> kAllJobs{"chief", "master", "worker", "ps", "evaluator"};
// What TensorFlow and the services that start it write.
const std::vector<std::string> kConfigKeys{
    "cluster", "task",    "environment",    "rpc_layer",           "job",
    "master",  "service", "session_master", "eval_session_master", "model_dir"};
const std::vector<std::string> kTaskKeys{"type", "index", "trial", "cloud"};

// Throws for unknown keys: what stands under a mistyped one would not be read.
void require_known_keys(const Variable& variable, const nlohmann::json& object, const std::string& what,
                        const std::vector<std::string>& known) {
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    unreadable(variable, fmt::format("{} \"{}\"; there are {}{}", what, key, fmt::join(known, ", "),
                                     did_you_mean(key, known)));
  }
}

// Returns the number of the cluster's addresses of this job.
std::int64_t addresses_of(const Variable& variable, const nlohmann::json& cluster, const std::string& job) {
  if (!cluster.contains(job)) return 0;
  const nlohmann::json& addresses = cluster[job];
  const auto is_text = [](const nlohmann::json& each) { return each.is_string(); };
  if (!addresses.is_array() || !std::ranges::all_of(addresses, is_text)) {
    unreadable(variable, fmt::format("\"{}\" of its cluster must be a list of addresses as \"node-a:2222\"", job));
  }
  return static_cast<std::int64_t>(addresses.size());
}

// Reads {"type": "worker", "index": 1}: a rank among the workers, chiefs first, or an evaluator.
void read_task(const Variable& variable, const nlohmann::json& task, const nlohmann::json& cluster,
               LaunchedProcess& process) {
  const bool sound = task.is_object() && task.contains("type") && task["type"].is_string() &&
                     task.contains("index") && task["index"].is_number_integer();
  if (task.is_object()) require_known_keys(variable, task, "its task has", kTaskKeys);
  if (!sound) unreadable(variable, R"(its task must be as {"type": "worker", "index": 0})");
  const std::string type = task["type"].get<std::string>();
  const std::int64_t index = task["index"].get<std::int64_t>(), count = addresses_of(variable, cluster, type);
  if (type == "evaluator") {
    process.evaluates = true;
    return;
  }
  if (index < 0 || index >= count) {
    unreadable(variable, fmt::format("its task is {} {}, and its cluster has {} of these{}", type, index, count,
                                     did_you_mean(type, count == 0 ? kAllJobs : std::vector<std::string>())));
  }
  process.rank = index;
  for (const std::string& job : kJobs) {
    if (type == job) return;
    *process.rank += addresses_of(variable, cluster, job);
  }
}

// Reads {"cluster": {"chief": [...], "worker": [...]}, "task": {...}}; without both there is one process.
std::optional<LaunchedProcess> process_of_tf_config(const Environment& environment) {
  const Variable variable = read(environment, "TF_CONFIG");
  if (!variable.set()) return std::nullopt;
  const nlohmann::json config = nlohmann::json::parse(variable.value, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) unreadable(variable, "it must be an object of JSON");
  require_known_keys(variable, config, "it has", kConfigKeys);
  if (!config.contains("cluster")) {
    if (config.contains("task")) unreadable(variable, "it has a task, but no cluster of which that is one");
    return std::nullopt;
  }
  const nlohmann::json& cluster = config["cluster"];
  if (!cluster.is_object()) unreadable(variable, "its cluster must be an object of lists of addresses");
  require_known_keys(variable, cluster, "its cluster has jobs", kAllJobs);
  LaunchedProcess process{.launcher = "TensorFlow", .workers = 0};
  for (const std::string& job : kJobs) *process.workers += addresses_of(variable, cluster, job);
  if (config.contains("task")) read_task(variable, config["task"], cluster, process);
  if (process.workers == 0 && !process.evaluates) unreadable(variable, "its cluster lists no worker");
  process.said = "TF_CONFIG with " + (config.contains("task") ? "task " + config["task"].dump() : "no task");
  return process;
}

// What each launcher says, those of one process among them; the innermost comes first.
std::vector<LaunchedProcess> all_that_launched(const Environment& environment) {
  std::vector<LaunchedProcess> found;
  if (const auto process = process_of_tf_config(environment)) found.push_back(*process);
  for (const Launcher& launcher : kLaunchers) {
    if (const auto process = process_of(launcher, environment)) found.push_back(*process);
  }
  return found;
}

// Returns whether `inner` may have been started within a process of `outer`, like torchrun on each node of Slurm:
// as many in each, in order.
bool may_be_within(const LaunchedProcess& inner, const LaunchedProcess& outer) {
  std::int64_t each = 1;
  if (inner.workers && outer.workers) {
    if (*inner.workers % *outer.workers != 0) return false;
    each = *inner.workers / *outer.workers;
  }
  return !inner.rank || !outer.rank || *inner.rank / each == *outer.rank;
}

// Throws if RANK or TF_CONFIG, which people set by hand, too, contradict a launcher. torchrun itself counts ranks
// as it likes, and MPI's launchers those that Slurm starts for them.
void refuse_contradictions(const std::vector<LaunchedProcess>& found, const Environment& environment) {
  const LaunchedProcess& inner = found.front();
  const bool by_torchrun = inner.launcher == "torchrun" && read(environment, "TORCHELASTIC_RUN_ID").set();
  if (by_torchrun || (inner.launcher != "torchrun" && inner.launcher != "TensorFlow")) return;
  for (const LaunchedProcess& outer : found) {
    if (inner.evaluates || may_be_within(inner, outer)) continue;
    throw ConfigError(fmt::format("{} and {} contradict each other: {}; {}", inner.launcher, outer.launcher,
                                  inner.said, outer.said),
                      "unset the variables of the one that did not start this process");
  }
}

}  // namespace

std::string LaunchedProcess::to_string() const {
  const std::string place = rank ? fmt::format("rank {} of", *rank) : evaluates ? "an evaluator beside" : "one of";
  const std::string count = workers ? fmt::format("{} workers", *workers) : "an unknown number of workers";
  return fmt::format("{} {} ({}: {})", place, count, launcher, said);
}

std::optional<LaunchedProcess> launched_process(const Environment& environment) {
  const std::vector<LaunchedProcess> found = all_that_launched(environment);
  if (found.empty()) return std::nullopt;
  refuse_contradictions(found, environment);
  const auto counted = std::ranges::find_if(found, [](const LaunchedProcess& one) { return one.workers > 1; });
  if (counted != found.end()) return *counted;
  if (found.front().evaluates) return found.front();
  // One that is the only process of its launcher.
  if (std::ranges::any_of(found, [](const LaunchedProcess& one) { return one.workers.has_value(); }))
    return std::nullopt;
  return found.front();
}

void refuse_half_a_launch(const Environment& environment) {
  if (is_allocation_of_slurm(environment) || !all_that_launched(environment).empty()) return;
  const auto refuse = [](const Variable& set, const std::string& lacking) {
    throw ConfigError(
        fmt::format("{} is set, but neither {}: which worker this is, of how many, is not said", set.said(),
                    lacking),
        fmt::format("start the workers by a launcher, which sets all of them; where this process runs "
                    "alone, unset {}",
                    set.name));
  };
  for (const Launcher& launcher : kLaunchers) {
    for (const char* name : launcher.others) {
      const Variable other = read(environment, name);
      if (other.set()) refuse(other, fmt::format("{} nor {}", launcher.rank, launcher.sizes.front()));
    }
  }
  const Variable coordinator = read(environment, "HEADRACE_COORDINATOR");
  if (coordinator.set()) refuse(coordinator, "RANK and WORLD_SIZE nor another launcher's variables");
}

void refuse_to_run_beside_others(const Environment& environment, const std::string& meant) {
  const std::optional<LaunchedProcess> process = launched_process(environment);
  if (!process) return refuse_half_a_launch(environment);
  const std::string count =
      process->missing.empty() ? "" : fmt::format("set {}=1 where it is the only one, ", process->missing);
  throw ConfigError(fmt::format("this process is {}, and would do the same work as the others, alone beside them",
                                process->to_string()),
                    fmt::format("start one process, {}or {}", count, meant));
}

}  // namespace headrace
