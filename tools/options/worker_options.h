// The options of a command that several workers run together.
#pragma once

#include <memory>

#include "headrace/devices/workers.h"

namespace CLI {
class App;
}

namespace headrace::tools {

// --worker-start-timeout, --worker-call-timeout and --worker-listen.
struct WorkerFlags {
  WorkerOptions limits = {};
  NamedValues same = {};    // by option, as typed
  std::string name = {};    // the command's
  bool standalone = false;  // see usage_check.h

  void add_to(CLI::App& command);
  // Takes over --standalone and what must be the same on all workers: every option that was typed, but for those
  // that say where a worker finds and puts its files, which only the chief reads, and how each uses its machine.
  void read(const CLI::App& command);
  // Joins the other workers, compares the options and takes this one's share of its host's cores; returns null for
  // a process that runs alone. REQUIRES: no threads were started that compute.
  std::shared_ptr<Workers> open() const;
};

}  // namespace headrace::tools
