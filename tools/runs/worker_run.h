// A command's work as one of the workers that a launcher started.
#pragma once

#include <functional>
#include <memory>

#include "headrace/devices/workers.h"

namespace headrace::tools {

// Returns whether this process prints and writes results. `workers` may be null.
inline bool is_chief(const std::shared_ptr<Workers>& workers) { return !workers || workers->rank() == 0; }

// Joins the other workers by open(), which returns null for a process that runs alone, and calls work(workers).
// Tells the others of an error; throws EndedByAnother where another worker's ended this one.
void run_with_workers(const std::function<std::shared_ptr<Workers>()>& open,
                      const std::function<void(const std::shared_ptr<Workers>&)>& work);

}  // namespace headrace::tools
