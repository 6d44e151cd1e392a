// The report of a run: one page that needs nothing else.
#pragma once

#include <string>

#include "headrace/tools/report/run_reading.h"

namespace headrace::tools {

// Begins every report, which is how one is told from a file of the user's.
inline constexpr const char* kReportBegin = "<!DOCTYPE html>\n<!-- made by headrace report -->\n";

// HTML that a strict parser of XML reads, too; no scripts, nothing from elsewhere. `others`: a sentence on the
// other runs of the folder, or empty.
std::string make_page(const RunReading& run, const std::string& others = {});

}  // namespace headrace::tools
