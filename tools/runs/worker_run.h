// Runs of one worker of several: their output, and the traces of all in one file, on one clock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "headrace/devices/base/trace.h"
#include "headrace/devices/workers.h"

namespace headrace::tools {

// Returns whether this process prints and writes results. `workers` may be null.
inline bool is_chief(const std::shared_ptr<Workers>& workers) { return !workers || workers->rank() == 0; }

// Joins the other workers by open(), which returns null for a process that runs alone, and calls work(workers).
// Tells the others of an error; throws EndedByAnother where another worker's ended this one.
void run_with_workers(const std::function<std::shared_ptr<Workers>()>& open,
                      const std::function<void(const std::shared_ptr<Workers>&)>& work);

// Returns by rank how far each worker's now_ns() is ahead of worker 0's: exact to the time that a reply of the
// coordinator takes to one worker and not to the other. All workers make the call.
std::vector<std::int64_t> clock_offsets(Workers& workers);

// Returns one trace of all workers' traces (Trace::to_json()), each a process with its worker's name. `offsets`:
// see clock_offsets().
std::string merge_traces(const std::vector<std::string>& traces, const std::vector<std::int64_t>& offsets,
                         const std::vector<std::string>& names);

// Returns what to write of a trace on the chief, with `workers` that of all of them; empty on others. `workers`
// may be null; all make the call.
std::string trace_text(const Trace& trace, Workers* workers);

}  // namespace headrace::tools
