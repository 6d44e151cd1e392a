// The pipeline of a run as a picture: its stages from left to right, what each could do and which one limits.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace headrace::tools {

// `input`: what InputStatistics::to_json() wrote. Markup in which the boxes of the stages stand in lines, as many
// as fit; stages that run on the same threads stand in one frame. Empty where the statistics name no stage.
std::string draw_pipeline(const nlohmann::json& input);

}  // namespace headrace::tools
