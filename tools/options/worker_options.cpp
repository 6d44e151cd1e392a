#include "headrace/tools/options/worker_options.h"

#include <CLI/CLI.hpp>

#include "headrace/tools/options/options.h"

namespace headrace::tools {

void WorkerFlags::add_to(CLI::App& command) {
  add_number(command, "--worker-start-timeout", limits.start_timeout_seconds,
             "seconds for all workers to start, if a launcher started several", {.min = 1, .max = 1e6})
      ->capture_default_str();
  add_number(command, "--worker-call-timeout", limits.call_timeout_seconds,
             "seconds that a worker waits for the others to reach the same step", {.min = 1, .max = 1e6})
      ->capture_default_str();
}

std::shared_ptr<Workers> WorkerFlags::open() const {
  if (standalone) return nullptr;
  std::shared_ptr<Workers> workers = open_world(limits);
  if (workers) share_cores(*workers);
  return workers;
}

}  // namespace headrace::tools
