// The figures of a run as tables.
#pragma once

#include <string>

#include "headrace/tools/report/run_reading.h"

namespace headrace::tools {

// A row an epoch; of very many epochs every so many, with the last.
std::string epoch_table(const TrainingLines& training);

// A row a training, where a run has several; else empty.
std::string training_table(const RunReading& run);

}  // namespace headrace::tools
