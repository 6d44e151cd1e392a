// The options of a command that several workers run together.
#pragma once

#include <memory>

#include "headrace/devices/workers.h"

namespace CLI {
class App;
}

namespace headrace::tools {

// --worker-start-timeout and --worker-call-timeout.
struct WorkerFlags {
  WorkerOptions limits = {};
  bool standalone = false;  // see standalone_option.h

  void add_to(CLI::App& command);
  // Joins the other workers and takes this one's share of its host's cores; returns null for a process that runs
  // alone. REQUIRES: no threads were started that compute.
  std::shared_ptr<Workers> open() const;
};

}  // namespace headrace::tools
