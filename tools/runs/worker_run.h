// A command's work as one of the workers that a launcher started.
#pragma once

#include <functional>
#include <memory>

#include "headrace/devices/workers.h"
#include "headrace/tools/options/worker_options.h"

namespace headrace::tools {

// Returns whether this process prints and writes results. `workers` may be null.
inline bool is_chief(const std::shared_ptr<Workers>& workers) { return !workers || workers->rank() == 0; }

// Joins the other workers, if there are any, and calls work(workers), null for a process that runs alone. Tells the
// others of an error; throws EndedByAnother where another worker's ended this one.
void run_with_workers(const WorkerFlags& flags, const std::function<void(const std::shared_ptr<Workers>&)>& work);

}  // namespace headrace::tools
