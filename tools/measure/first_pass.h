// `headrace bench input --first-pass`: the rate of a run of one epoch; the memory of this process.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/pipeline/dataset.h"
#include "headrace/tools/measure/compared_rates.h"
#include "headrace/tools/options/pipeline_options.h"

namespace headrace::tools {

// One pass over the data by an engine that has not seen them: includes the indexing of JPEGs. The operating system
// may have the files in memory.
struct FirstPass {
  double images_per_second = 0;  // after the first batch, if there is more than one
  double seconds = 0;            // from the loader's construction on
  double first_batch_ms = 0;     // the start, and the first batch
  int threads = 0;               // at its end
  std::vector<double> waits_us;  // in next(), for each global batch but the first
};

// Measures a pass over newly opened data, about which nothing is known. Throws Error(kNotFound) if there is no
// batch.
FirstPass measure_first_pass(const PipelineCommandOptions& options, const Dataset& dataset, DeviceGroup& devices);

// Runs first passes, each on reopened data, and the others in turn, A B A B ..., each turn as long as the pass
// before it, after a pair that is not counted. Returns the passes.
std::vector<FirstPass> first_passes_in_turn(const PipelineCommandOptions& options, DeviceGroup& devices,
                                            std::vector<ComparedRates>& others);

// Returns the resident set size in bytes; 0 if the system does not report it.
std::uint64_t resident_memory_bytes();

// Returns its maximum so far; 0 if the system does not report it.
std::uint64_t peak_resident_memory_bytes();

}  // namespace headrace::tools
