// `headrace doctor --data`: reports what a data set was recognised as.
#pragma once

#include <cstdint>
#include <filesystem>

#include "headrace/pipeline/sources.h"
#include "headrace/tools/output/json_lines.h"

namespace headrace::tools {

struct DataDoctorOptions {
  std::filesystem::path data = {};
  LayoutOptions layout = {};
  ColumnOptions columns = {};
  std::uint64_t examine = 10'000;  // records of each split, evenly spread; 0: all
};

// Prints kind, splits, classes with their counts, sizes, what was left out and the first bad records. Throws as
// open_source() does if no split can be opened.
void diagnose_data(const DataDoctorOptions& options, JsonLines& json);

}  // namespace headrace::tools
