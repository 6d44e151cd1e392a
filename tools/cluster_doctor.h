// `headrace doctor --cluster`: the world that this process would join.
#pragma once

#include "headrace/tools/output/json_lines.h"

namespace headrace::tools {

struct ClusterDoctorOptions {
  bool cluster = false;
  double wait_seconds = 10;  // for the others to be there; 0: only reads the environment
};

// Prints what the launcher says and where from, then meets the others and prints who they are. Throws what
// plan_workers() and open_world() do: ConfigError for variables that do not fit, DeviceError naming who is
// missing.
void diagnose_cluster(const ClusterDoctorOptions& options, JsonLines& json);

}  // namespace headrace::tools
