// What a launcher of several processes says in the environment. Private to the trainer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace headrace {

// A process started as one of several.
struct ClusterPlace {
  std::int64_t workers = 1;
  std::string said_by;  // "WORLD_SIZE, of torchrun": the variable, and who sets it
};

// The value of an environment variable; null where it is not set.
using Environment = std::function<const char*(const char*)>;

// The first of TF_CONFIG, WORLD_SIZE, OMPI_COMM_WORLD_SIZE, PMI_SIZE and SLURM_NTASKS that names more than one
// worker; nothing where none does. In TF_CONFIG a chief and each worker count, and a parameter server makes it a
// cluster, too. Throws ConfigError for a value that cannot be read: it was not set for a single process.
std::optional<ClusterPlace> cluster_place(const Environment& environment);

// Throws ConfigError where this process is one of several: it would train alone, on its own data and weights,
// beside others that do the same.
void refuse_to_train_alone(const Environment& environment);

}  // namespace headrace
