// `headrace doctor --cluster`: reports the world that this process would join.
#pragma once

#include "headrace/tools/output/json_lines.h"

namespace headrace::tools {

struct ClusterDoctorOptions {
  bool cluster = false;
  double wait_seconds = 10;  // for the others to arrive; 0: only reads the environment
};

// Prints the launcher's settings and their origin, then meets the others and prints who they are and which
// transport of values they agreed on, and why. Throws as
// plan_workers() and open_world() do: ConfigError for inconsistent variables, DeviceError naming missing workers.
void diagnose_cluster(const ClusterDoctorOptions& options, JsonLines& json);

}  // namespace headrace::tools
