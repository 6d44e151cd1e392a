// A run in a few words and figures.
#pragma once

#include <string>

#include "headrace/tools/report/run_reading.h"

namespace headrace::tools {

// Returns "mnist-mlp: finished".
std::string headline_of(const RunReading& run);
// Draws the title, the devices and data, and how the run ended.
std::string draw_heading(const RunReading& run);
// Draws missing and damaged files and warnings; empty if there are none.
std::string draw_notes(const RunReading& run);
// Draws the final figures.
std::string draw_cards(const RunReading& run);
// Draws what was run, and on what.
std::string draw_facts(const RunReading& run);

}  // namespace headrace::tools
