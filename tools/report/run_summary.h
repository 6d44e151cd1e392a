// A run in a few words and figures.
#pragma once

#include <string>

#include "headrace/tools/report/run_reading.h"

namespace headrace::tools {

// "mnist-mlp: finished", and whatever else is known at a glance.
std::string headline_of(const RunReading& run);
// The title, the devices and data, how the run ended.
std::string draw_heading(const RunReading& run);
// What is missing, damaged or was warned of; empty where there is nothing.
std::string draw_notes(const RunReading& run);
// The final figures.
std::string draw_cards(const RunReading& run);
// What was run, on what.
std::string draw_facts(const RunReading& run);

}  // namespace headrace::tools
