// The report of a run: one self-contained page.
#pragma once

#include <string>

#include "headrace/tools/report/run_reading.h"

namespace headrace::tools {

// Begins every report, which distinguishes it from a user's file.
inline constexpr const char* kReportBegin = "<!DOCTYPE html>\n<!-- made by headrace report -->\n";

// Returns HTML that is also strict XML; no scripts, no external resources. `others`: a sentence on the other runs
// of the folder, or empty.
std::string make_page(const RunReading& run, const std::string& others = {});

}  // namespace headrace::tools
