#include "headrace/devices/base/launcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "headrace/devices/base/did_you_mean.h"
#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

// A row of the table. Unused variables are null.
struct Launcher {
  const char* name;
  const char* rank;
  std::array<const char*, 4> sizes;  // the first one set counts
  bool own_size = true;  // else the sizes are those of other launchers, which use it to start processes
};

// The innermost launcher comes first: torchrun within Slurm describes this process, Slurm describes torchrun.
constexpr std::array kLaunchers = {
    Launcher{.name = "torchrun", .rank = "RANK", .sizes = {"WORLD_SIZE"}},
    Launcher{.name = "Open MPI", .rank = "OMPI_COMM_WORLD_RANK", .sizes = {"OMPI_COMM_WORLD_SIZE"}},
    Launcher{.name = "MVAPICH2", .rank = "MV2_COMM_WORLD_RANK", .sizes = {"MV2_COMM_WORLD_SIZE"}},
    Launcher{.name = "MPI", .rank = "PMI_RANK", .sizes = {"PMI_SIZE"}},
    Launcher{.name = "PMIx",
             .rank = "PMIX_RANK",
             .sizes = {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"},
             .own_size = false},
    Launcher{.name = "Slurm",
             .rank = "SLURM_PROCID",
             .sizes = {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"}},
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
  if (process.workers == 1) return std::nullopt;
  process.said = rank.set() && size.set() ? rank.said() + ", " + size.said()
                 : rank.set()             ? rank.said()
                                          : size.said();
  if (!size.set() && launcher.own_size) process.missing = launcher.sizes.front();
  return process;
}

// The jobs that train together; an evaluator is not among them.
constexpr std::array<std::string_view, 4> kJobs = {"chief", "master", "worker", "ps"};

// Returns the number of the cluster's addresses of this job.
std::int64_t addresses_of(const Variable& variable, const nlohmann::json& cluster, const std::string& job) {
  if (!cluster.contains(job)) return 0;
  if (!cluster[job].is_array()) unreadable(variable, fmt::format("\"{}\" of its cluster must be a list", job));
  return static_cast<std::int64_t>(cluster[job].size());
}

// Throws for unknown jobs: the workers of a mistyped job would not be counted.
void require_known_jobs(const Variable& variable, const nlohmann::json& cluster) {
  for (const auto& [job, addresses] : cluster.items()) {
    if (job == "evaluator" || std::ranges::find(kJobs, job) != kJobs.end()) continue;
    unreadable(variable,
               fmt::format("its cluster has jobs \"{}\"; there are chief, master, worker, ps and evaluator{}", job,
                           did_you_mean(job, {kJobs.begin(), kJobs.end()})));
  }
}

// Returns the place of {"type": "worker", "index": 1} among the workers, chiefs first; std::nullopt for an
// evaluator.
std::optional<std::int64_t> rank_of_task(const Variable& variable, const nlohmann::json& task,
                                         const nlohmann::json& cluster) {
  const bool sound = task.is_object() && task.contains("type") && task["type"].is_string() &&
                     task.contains("index") && task["index"].is_number_integer();
  if (!sound) unreadable(variable, R"(its task must be as {"type": "worker", "index": 0})");
  const std::string type = task["type"].get<std::string>();
  if (type == "evaluator") return std::nullopt;
  const std::int64_t index = task["index"].get<std::int64_t>(), count = addresses_of(variable, cluster, type);
  if (index < 0 || index >= count) {
    unreadable(variable, fmt::format("its task is {} {}, and its cluster has {} of these", type, index, count));
  }
  std::int64_t before = 0;
  for (const std::string_view job : kJobs) {
    if (type == job) return before + index;
    before += addresses_of(variable, cluster, std::string(job));
  }
  return std::nullopt;
}

// Reads {"cluster": {"chief": [...], "worker": [...]}, "task": {...}}; without a cluster there is one process.
std::optional<LaunchedProcess> process_of_tf_config(const Environment& environment) {
  const Variable variable = read(environment, "TF_CONFIG");
  if (!variable.set()) return std::nullopt;
  const nlohmann::json config = nlohmann::json::parse(variable.value, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) unreadable(variable, "it must be an object of JSON");
  if (!config.contains("cluster")) return std::nullopt;
  const nlohmann::json& cluster = config["cluster"];
  if (!cluster.is_object()) unreadable(variable, "its cluster must be an object of lists of addresses");
  require_known_jobs(variable, cluster);
  std::int64_t workers = 0;
  for (const std::string_view job : kJobs) workers += addresses_of(variable, cluster, std::string(job));
  LaunchedProcess process{.launcher = "TensorFlow", .workers = workers};
  if (config.contains("task")) process.rank = rank_of_task(variable, config["task"], cluster);
  if (workers < 2) return std::nullopt;
  process.said = "TF_CONFIG with " + (config.contains("task") ? "task " + config["task"].dump() : "no task");
  return process;
}

}  // namespace

std::string LaunchedProcess::to_string() const {
  const std::string place = rank ? fmt::format("rank {} of", *rank) : "one of";
  const std::string count = workers ? fmt::format("{} workers", *workers) : "an unknown number of workers";
  return fmt::format("{} {} ({}: {})", place, count, launcher, said);
}

std::optional<LaunchedProcess> launched_process(const Environment& environment) {
  std::vector<LaunchedProcess> found;
  if (const auto process = process_of_tf_config(environment)) found.push_back(*process);
  for (const Launcher& launcher : kLaunchers) {
    if (const auto process = process_of(launcher, environment)) found.push_back(*process);
  }
  if (found.empty()) return std::nullopt;
  const auto counted =
      std::ranges::find_if(found, [](const LaunchedProcess& one) { return one.workers.has_value(); });
  return counted == found.end() ? found.front() : *counted;
}

void refuse_to_run_beside_others(const Environment& environment, const std::string& meant) {
  const std::optional<LaunchedProcess> process = launched_process(environment);
  if (!process) return;
  const std::string count =
      process->missing.empty() ? "" : fmt::format("set {}=1 where it is the only one, ", process->missing);
  throw ConfigError(fmt::format("this process is {}, and would do the same work as the others, alone beside them",
                                process->to_string()),
                    fmt::format("start one process, {}or {}", count, meant));
}

}  // namespace headrace
