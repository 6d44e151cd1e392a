// The charts of a run.
#pragma once

#include <string>
#include <vector>

#include "headrace/tools/report/run_reading.h"

namespace headrace::tools {

// Draws loss, metrics, rates and all other numbers of the epochs' lines, training and validation in one chart;
// empty if there are no epochs.
std::string draw_curves(const TrainingLines& training);

// Draws the shares of time in which devices were idle, and the examples per second, over time; empty if there is
// no timeline.
std::string draw_timeline(const std::vector<nlohmann::json>& timeline);

// Returns "The devices stood still for 1.2 % of the time; input stall is 0.3 % of the time."
std::string standstill_sentence(const std::vector<nlohmann::json>& timeline);

// Returns the names of the metrics in the epochs' lines, without "val_".
std::vector<std::string> metrics_of(const TrainingLines& training);

}  // namespace headrace::tools
