// The pipeline of a run as a picture: its stages from left to right, each one's capacity and which one limits.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace headrace::tools {

// Returns markup with the boxes of the stages in lines, as many as fit; stages on the same threads share a frame.
// Empty if the statistics name no stage. `input`: the output of InputStatistics::to_json().
std::string draw_pipeline(const nlohmann::json& input);

}  // namespace headrace::tools
