// The charts of a run.
#pragma once

#include <string>
#include <vector>

#include "headrace/tools/report/run_reading.h"

namespace headrace::tools {

// Loss, metrics, rates and whatever else the epochs' lines have numbers of, training and validation in one chart;
// empty where there are no epochs.
std::string draw_curves(const TrainingLines& training);

// The shares of time in which devices stood still, and the examples a second, over time; empty where there is no
// timeline.
std::string draw_timeline(const std::vector<nlohmann::json>& timeline);

// "The devices stood still for 1.2 % of the time; input stall is 0.3 % of the time."
std::string standstill_sentence(const std::vector<nlohmann::json>& timeline);

// The names of the metrics in the epochs' lines, without "val_".
std::vector<std::string> metrics_of(const TrainingLines& training);

}  // namespace headrace::tools
