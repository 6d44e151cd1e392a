// What a launcher of several processes (torchrun, mpirun, Slurm, Kubernetes ...) says of this one in its
// environment.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

// Returns the value of an environment variable; null where it is not set.
using Environment = std::function<const char*(const char*)>;

// A process that was started as one of several.
struct LaunchedProcess {
  std::string launcher = {};                           // "torchrun"
  std::optional<std::int64_t> workers = std::nullopt;  // above 1; nothing where the launcher does not say
  std::optional<std::int64_t> rank = std::nullopt;     // from 0; nothing where the launcher does not say
  std::string said = {};                               // "RANK=2, WORLD_SIZE=4": the variables that say it
  std::string missing = {};                            // the variable that would say how many workers there are

  // "rank 2 of 4 workers (torchrun: RANK=2, WORLD_SIZE=4)"
  std::string to_string() const;
};

// Returns what the first launcher of several workers says; nothing for a process that runs alone: without a
// launcher, as the only worker of one, or in an allocation of Slurm's outside of srun. In TF_CONFIG a chief, each
// worker and each parameter server count. Throws ConfigError naming the variable whose value cannot be read.
std::optional<LaunchedProcess> launched_process(const Environment& environment);

// Throws ConfigError where this process is one of several: it would do alone what the others do beside it. `meant`
// says how the caller's user runs it all the same: "pass --standalone".
void refuse_to_run_beside_others(const Environment& environment, const std::string& meant);

}  // namespace headrace
