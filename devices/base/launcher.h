// This process as the environment variables of a launcher of several processes (torchrun, mpirun, Slurm,
// Kubernetes etc.) describe it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

// Returns the value of an environment variable; null if it is not set.
using Environment = std::function<const char*(const char*)>;

// A process that was started as one of several.
struct LaunchedProcess {
  std::string launcher = {};                           // "torchrun"
  std::optional<std::int64_t> workers = std::nullopt;  // above 1; std::nullopt if not set
  std::optional<std::int64_t> rank = std::nullopt;     // from 0; std::nullopt if not set
  std::string said = {};                               // "RANK=2, WORLD_SIZE=4": the variables that say it
  std::string missing = {};                            // the variable that would give the number of workers
  bool evaluates = false;                              // TF_CONFIG's evaluator, which is no worker

  // "rank 2 of 4 workers (torchrun: RANK=2, WORLD_SIZE=4)"
  std::string to_string() const;
};

// Returns the description by the first launcher of several workers; std::nullopt for a process that runs alone:
// without a launcher, as its only worker, or in a Slurm allocation outside srun. In TF_CONFIG a chief, each worker
// and each parameter server count. Throws ConfigError naming a variable whose value cannot be read, or two
// launchers that contradict each other.
std::optional<LaunchedProcess> launched_process(const Environment& environment);

// Throws ConfigError if variables of a world are set (MASTER_ADDR, HEADRACE_COORDINATOR), but none that says which
// of its processes this one is. A script of sbatch sets them for the tasks that it starts.
void refuse_half_a_launch(const Environment& environment);

// Calls refuse_half_a_launch(); throws ConfigError if this process is one of several: each of them would do the
// same work. `meant` tells the user how to run it anyway: "pass --standalone where each is to run alone".
void refuse_to_run_beside_others(const Environment& environment, const std::string& meant);

}  // namespace headrace
