// The figures of a run as tables.
#pragma once

#include <string>

#include "headrace/tools/report/run_reading.h"

namespace headrace::tools {

// Returns one row per epoch; for very many epochs, evenly spaced rows and the last.
std::string epoch_table(const TrainingLines& training);

// Returns one row per worker, of the last epoch; empty unless several trained.
std::string worker_table(const TrainingLines& training);

// Returns one row per training if a run has several; else empty.
std::string training_table(const RunReading& run);

}  // namespace headrace::tools
